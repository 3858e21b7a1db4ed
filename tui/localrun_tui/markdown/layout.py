"""Markdown blocks as lines of a width. Texts pass the sanitizer once more here: an entity may name any character."""

from collections.abc import Iterable

from markdown_it.tree import SyntaxTreeNode
from textual.content import Content

from localrun.base.sanitize import clean
from localrun_tui.markdown.code import code_lines
from localrun_tui.markdown.inline import inline
from localrun_tui.markdown.table import table_lines

_BULLETS = "•◦▪"
_MIN_WIDTH = 8


def block_lines(node: SyntaxTreeNode, width: int, first_code: int, grows: bool = False) -> list[Content]:
    """The lines of one block, to which more may come; its code blocks are numbered from `first_code` on."""
    return _Layout(first_code, grows).block(node, width, 0)


class _Layout:
    def __init__(self, first_code: int, grows: bool) -> None:
        self._next_code = first_code
        self._grows = grows

    def block(self, node: SyntaxTreeNode, width: int, depth: int) -> list[Content]:
        width = max(width, _MIN_WIDTH)
        match node.type:
            case "heading":
                style = "bold underline $text-primary" if node.tag == "h1" else "bold $text-primary"
                return inline(node, style).wrap(width)
            case "bullet_list" | "ordered_list":
                return self._list(node, width, depth)
            case "blockquote":
                bar = Content.styled("▌ ", "$foreground-muted")
                return [
                    bar + line.stylize("$foreground-muted") for line in self._blocks(node.children, width - 2, depth)
                ]
            case "fence" | "code_block":
                return self._code(node, width)
            case "table":
                return table_lines(node, width)
            case "hr":
                return [Content.styled("─" * width, "$foreground 30%")]
        return inline(node).wrap(width)

    def _blocks(self, nodes: Iterable[SyntaxTreeNode], width: int, depth: int, tight: bool = False) -> list[Content]:
        lines: list[Content] = []
        for node in nodes:
            if lines and not tight:
                lines.append(Content())
            lines += self.block(node, width, depth)
        return lines

    def _list(self, node: SyntaxTreeNode, width: int, depth: int) -> list[Content]:
        first = int(node.attrs.get("start", 1))
        last = first + len(node.children) - 1
        bullet = f"{_BULLETS[depth % len(_BULLETS)]} "
        lines: list[Content] = []
        for number, item in enumerate(node.children, first):
            marker = f"{number:>{len(str(last))}}. " if node.type == "ordered_list" else bullet
            tight = all(child.hidden for child in item.children if child.type == "paragraph")
            if lines and not tight:
                lines.append(Content())
            inner = self._blocks(item.children, width - len(marker), depth + 1, tight) or [Content()]
            lines.append(Content.styled(marker, "$text-primary") + inner[0])
            lines += [line.pad_left(len(marker)) for line in inner[1:]]
        return lines

    def _code(self, node: SyntaxTreeNode, width: int) -> list[Content]:
        number = self._next_code
        self._next_code += 1
        return code_lines(clean(node.content), clean(node.info, keep_newlines=False), width, number, self._grows)

"""Markdown blocks as lines of a width. Texts pass the sanitizer once more here: an entity may name any character."""

import re
from collections.abc import Iterable

from markdown_it.tree import SyntaxTreeNode
from textual.content import Content

from localrun.base.sanitize import clean
from localrun_tui.markdown.code import code_lines
from localrun_tui.markdown.formulas import formula
from localrun_tui.markdown.inline import inline
from localrun_tui.markdown.table import table_lines
from localrun_tui.markdown.wide import FITTED, Wide
from localrun_tui.markdown.wrapping import wrap

_BULLETS = "•◦▪"
_MIN_WIDTH = 8
_TASK = re.compile(r"\[([ xX])\] ")  # at the beginning of an item
_BOXES = "☐ ", "☑ "


def block_lines(
    node: SyntaxTreeNode, width: int, first_code: int, grows: bool = False, wide: Wide = FITTED
) -> list[Content]:
    """The lines of one block, to which more may come; its code blocks are numbered from `first_code` on."""
    return _Layout(first_code, grows, wide).block(node, width, 0)


class _Layout:
    def __init__(self, first_code: int, grows: bool, wide: Wide) -> None:
        self._next_code = first_code
        self._grows = grows
        self._wide = wide

    def block(self, node: SyntaxTreeNode, width: int, depth: int) -> list[Content]:
        width = max(width, _MIN_WIDTH)
        match node.type:
            case "heading":
                style = "bold underline $text-primary" if node.tag == "h1" else "bold $text-primary"
                return wrap(inline(node, style), width)
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
                return table_lines(node, width, self._wide)
            case "math_block":
                return [Content("  ") + line for line in wrap(formula(node.content), width - 2)]
            case "hr":
                return [Content.styled("─" * width, "$foreground 30%")]
        return wrap(inline(node), width)

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
            box = _TASK.match(_text_of(item))
            if box:
                marker = _BOXES[box[1] != " "]
            tight = all(child.hidden for child in item.children if child.type == "paragraph")
            if lines and not tight:
                lines.append(Content())
            inner = self._blocks(item.children, width - len(marker), depth + 1, tight) or [Content()]
            if box:
                inner[0] = inner[0][len(box[0]) :]
            lines.append(Content.styled(marker, "$text-primary") + inner[0])
            lines += [line.pad_left(len(marker)) for line in inner[1:]]
        return lines

    def _code(self, node: SyntaxTreeNode, width: int) -> list[Content]:
        number = self._next_code
        self._next_code += 1
        return code_lines(
            clean(node.content), clean(node.info, keep_newlines=False), width, number, self._grows, self._wide
        )


def _text_of(item: SyntaxTreeNode) -> str:
    """The first paragraph of an item, if it begins with one."""
    first = item.children[0] if item.children else None
    return first.children[0].content if first is not None and first.type == "paragraph" and first.children else ""

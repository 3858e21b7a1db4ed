"""Markdown that grows at its end: blocks, of which only the last is read again when more arrives."""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from textual.content import Content

from localrun.base.sanitize import Cleaner
from localrun_tui.markdown.formulas import add_formulas
from localrun_tui.markdown.layout import block_lines
from localrun_tui.markdown.wide import FITTED, Wide

_TOO_DEEP = re.compile(
    r"^[ \t]*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]*){25}", re.M
)  # deeper than real texts, and dropped by the parser


@cache
def _parser(preset: str) -> MarkdownIt:
    """One for all messages: it keeps nothing between two texts, and is slow to make."""
    parser = MarkdownIt(preset, {"html": False, "linkify": False})
    if preset != "zero":
        add_formulas(parser)
    return parser


class MarkdownBlock:
    """One top-level paragraph, list, table or code block, and its lines as last laid out."""

    def __init__(self, node: SyntaxTreeNode, first_code: int, grows: bool = False) -> None:
        self.node = node
        self.first_code = first_code  # number of its first code block
        self.grows = grows
        self.codes = [n.content.rstrip("\n") for n in node.walk() if n.type in ("fence", "code_block")]
        self._lines: tuple[tuple[int, Wide], list[Content]] | None = None

    def lines(self, width: int, wide: Wide) -> list[Content]:
        if self._lines is None or self._lines[0] != (width, wide):
            self._lines = (width, wide), block_lines(self.node, width, self.first_code, self.grows, wide)
        return self._lines[1]


class MarkdownText:
    """Foreign text on its way to the screen. Escape sequences are dropped wherever a chunk may cut them."""

    def __init__(self, text: str = "") -> None:
        self.source = ""
        self._blocks: list[MarkdownBlock] = []
        self._tail = 0  # where the last block begins in `source`
        self._cleaner = Cleaner()
        self.append(text, is_last=True)

    def append(self, text: str, is_last: bool = False) -> None:
        """Add text and parse the last block again, the only one that it can change. `is_last`: no more will come."""
        self.source += self._cleaner.feed(text)
        tail = self.source[self._tail :]
        parser = _parser("zero" if _TOO_DEEP.search(tail) else "gfm-like")  # zero: paragraphs only
        nodes = SyntaxTreeNode(parser.parse(tail)).children
        if self._blocks and nodes:
            self._blocks.pop()
        for node in nodes:
            before = self._blocks[-1] if self._blocks else None
            first_code = before.first_code + len(before.codes) if before else 1
            self._blocks.append(MarkdownBlock(node, first_code, grows=node is nodes[-1] and not is_last))
        if len(nodes) > 1 and nodes[-1].map is not None:
            self._tail += sum(len(line) + 1 for line in tail.split("\n")[: nodes[-1].map[0]])

    def lines(self, width: int, wide: Wide = FITTED) -> list[Content]:
        """All lines, with an empty one between two blocks."""
        lines: list[Content] = []
        for block in self._blocks:
            if lines:
                lines.append(Content())
            lines += block.lines(width, wide)
        return lines

    def codes(self) -> list[str]:
        """The texts of all code blocks; the first is number 1 on the screen."""
        return [code for block in self._blocks for code in block.codes]

    def has_wide(self) -> bool:
        """Whether there is code or a table in it."""
        kinds = ("fence", "code_block", "table")
        return any(node.type in kinds for block in self._blocks for node in block.node.walk())

    def links(self) -> list[str]:
        """Where its links lead, each once."""
        nodes = [node for block in self._blocks for node in block.node.walk() if node.type in ("link", "image")]
        targets = [str(node.attrs.get("href") or node.attrs.get("src") or "") for node in nodes]
        return list(dict.fromkeys(target for target in targets if target))

"""The text inside a Markdown block: emphasis, code, and links whose targets are always shown."""

from markdown_it.tree import SyntaxTreeNode
from textual.content import Content, Span
from textual.style import Style

from localrun.base.sanitize import clean
from localrun_tui.markdown.formulas import formula

# Keys in the meta of a style: what a click on a piece of text means.
ACT = "act"  # "back", "on" (a branch), "thinking"
CODE = "code"  # the number of a code block: copy it
LINK = "link"  # the target of a link

_STYLES = {"strong": "bold", "em": "italic", "s": "strike", "code_inline": "$text-accent on $accent 12%"}


def inline(node: SyntaxTreeNode, style: str = "") -> Content:
    """The content of a paragraph, heading or cell. A line break in it is one on the screen."""
    writer = _Writer()
    writer.styled(node, style)
    return writer.content()


class _Writer:
    def __init__(self) -> None:
        self._texts: list[str] = []
        self._spans: list[Span] = []
        self._length = 0

    def content(self) -> Content:
        return Content("".join(self._texts), spans=self._spans)

    def styled(self, node: SyntaxTreeNode, style: str | Style) -> None:
        """The inside of `node`, with `style` on all of it."""
        start = self._length
        self._inside(node)
        if style and self._length > start:
            self._spans.insert(0, Span(start, self._length, style))

    def _inside(self, node: SyntaxTreeNode) -> None:
        if not node.children:
            self._add(node.content)
        for child in node.children:
            if child.type in _STYLES:
                self.styled(child, _STYLES[child.type])
            elif child.type in ("link", "image"):
                self._link(child)
            elif child.type in ("math_inline", "math_inline_double"):
                self._formula(child.content)
            elif child.type in ("softbreak", "hardbreak"):
                self._add("\n")
            else:
                self._inside(child)

    def _link(self, node: SyntaxTreeNode) -> None:
        """`words (target)`; a target that equals its words is shown once."""
        target = str(node.attrs.get("href") or node.attrs.get("src") or "")
        meta = Style.from_meta({LINK: target})
        if node.type == "image":
            self._add("▣ ")
        first, start = len(self._texts), self._length
        self._inside(node)
        self._spans.append(Span(start, self._length, Style(underline=True) + meta))
        words = "".join(self._texts[first:])
        if words != clean(target, keep_newlines=False):
            start = self._length
            self._add(f" ({target})" if words else target)
            self._spans += [Span(start, self._length, "$foreground-muted"), Span(start, self._length, meta)]

    def _formula(self, source: str) -> None:
        content = formula(source)
        start = self._length
        self._add(content.plain)
        self._spans += [Span(start + span.start, start + span.end, span.style) for span in content.spans]

    def _add(self, text: str) -> None:
        text = clean(text)
        self._texts.append(text)
        self._length += len(text)

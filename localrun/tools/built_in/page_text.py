"""The text of a page: HTML without its tags, scripts and styles."""

import re
from html.parser import HTMLParser

_HIDDEN = ("script", "style", "template", "noscript", "svg")
_BLOCK = re.compile("p|div|br|li|ul|ol|tr|table|section|article|header|footer|nav|pre|title|h[1-6]")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif _BLOCK.fullmatch(tag):
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif _BLOCK.fullmatch(tag):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(re.sub(r"\s+", " ", data))


def text_of_page(html: str) -> str:
    """The text that a reader sees, roughly: one line per block."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = (line.strip() for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)

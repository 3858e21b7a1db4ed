"""Lines of a width. Where there are no spaces between words, as in Chinese and Japanese, a line ends between signs."""

import re

from rich._wrap import divide_line
from rich.cells import cell_len
from textual import content as textual_content
from textual.content import Content

_NOT_FIRST = set("、。，．！？：；）〕］｝〉》」』】’”…ー々っゃゅょッャュョ％,.!?:;)]}")
_NOT_LAST = set("（〔［｛〈《「『【‘“([{")
_WIDE_FROM = "\u1100"  # signs of two cells begin here
_ALONG = "[\u0300-\u036f\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*"  # accents, forms and tones of the sign before
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
_SIGN = re.compile(f"{_FLAG}|.{_ALONG}(?:\u200d.{_ALONG})*", re.S)  # with those that are joined to it


def _divide_line(text: str, width: int, fold: bool = True) -> list[int]:
    """Divide a line as rich does, which fails for a width of 0.

    Lists and buttons of Textual ask for that once their frame takes all the cells of a tiny terminal.
    """
    return divide_line(text, max(width, 1), fold)


textual_content.divide_line = _divide_line  # type: ignore[attr-defined]  # all text of the app is wrapped by it


def wrap(content: Content, width: int) -> list[Content]:
    """The lines of a text in `width` cells; spaces where a line ends are dropped."""
    if max(content.plain, default="") < _WIDE_FROM:
        return content.wrap(width)
    lines: list[Content] = []
    for line in content.split("\n", allow_blank=True):
        lines += [part.rstrip() for part in line.divide(_breaks(line.plain, width))] if line.plain else [line]
    return lines


def first_lines(content: Content, width: int, n_lines: int) -> Content:
    """A text in `n_lines` lines at most; the last of them ends with an ellipsis where there were more."""
    lines = wrap(content, width)
    if len(lines) > n_lines:
        lines = [*lines[: n_lines - 1], lines[n_lines - 1].truncate(max(width - 2, 0)) + Content(" …")]
    return Content("\n").join(lines)


def _breaks(text: str, width: int) -> list[int]:
    """Where lines begin after the first: as late as each may, after a space or between two wide signs."""
    starts: list[int] = []
    start = cells = 0
    last: int | None = None  # the last place where this line may end
    before = ""
    for found in _SIGN.finditer(text):
        index, sign = found.start(), found[0]
        size = cell_len(sign)
        if index > start and _may_break(before, sign):
            last = index
        if cells + size > width and sign != " " and index > start:
            start = last if last is not None and last > start else index
            starts.append(start)
            last = None
            cells = cell_len(text[start:index])
        cells += size
        before = sign
    return starts


def _may_break(before: str, after: str) -> bool:
    if before == " ":
        return after != " "
    wide = cell_len(before) == 2 or cell_len(after) == 2
    return wide and after not in _NOT_FIRST and before not in _NOT_LAST and after != " "

"""Minimal updates of the terminal: of each picture the cells that differ from what is there; lines that
moved up are moved by the terminal itself. Over ssh an answer then costs little more than its text."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

from localrun.base.dataclass import dataclass
from localrun_tui.widgets.row_diff import RowWriter, cells_of

StripPiece = tuple[int, int, Strip]  # row, column, content
_FURTHEST = 12  # lines that a picture may have moved up by
_WORTH = 3  # lines that have to be saved by that
_BESIDE = 4  # columns at the right where a scrollbar may be


class ShownRows:
    """Rows that the terminal shows, as far as that is known. `erases`: whether it fills lines that come in with
    the background that is set."""

    def __init__(self, erases: bool | None = None) -> None:
        self._size = Size(0, 0)
        self._rows: list[Strip | None] = []
        self._erases = _fills_with_background() if erases is None else erases
        self._pen = RowWriter(self._erases)

    def forget(self) -> None:
        """Forget all rows: another program writes to the terminal."""
        self._size = Size(0, 0)
        self._pen = RowWriter(self._erases)

    def draw(self, pieces: Iterable[StripPiece], size: Size, console: Console) -> str:
        """The codes that make the terminal show these pieces in the place of what is there."""
        if size != self._size:
            self._size, self._rows = size, [None] * size.height
            self._pen = RowWriter(self._erases)
            self._pen.write("\x1b[0m")
        wanted = self._wanted(pieces, console)
        if (part := self._scrolled(wanted)) is not None:
            self._scroll(*part, wanted, console._color_system)
        for y, row in wanted.items():
            self._pen.change(y, self._rows[y], row, console)
            self._rows[y] = row
        return self._pen.take()

    def _wanted(self, pieces: Iterable[StripPiece], console: Console) -> dict[int, Strip]:
        """The rows as they are to be. What belongs into a row that is not known is written at once."""
        wanted: dict[int, Strip] = {}
        width = self._size.width
        for y, x, strip in pieces:
            if not 0 <= y < self._size.height:
                continue
            end, before = x + strip.cell_length, wanted.get(y, self._rows[y])
            if x == 0 and end == width:
                wanted[y] = strip
            elif before is None:
                self._pen.put(y, x, strip, console)
            else:
                wanted[y] = Strip.join([before.crop(0, x), strip, before.crop(end, width)])
        return wanted

    def _scrolled(self, wanted: dict[int, Strip]) -> tuple[int, int, int] | None:
        """First and last row of a part that moved up, and by how many; None where that would save little."""
        if len(wanted) <= _WORTH:
            return None
        old = [None if row is None else row.text[:-_BESIDE] for row in self._rows]
        new = [wanted[y].text[:-_BESIDE] if y in wanted else look for y, look in enumerate(old)]
        best, part = _WORTH, None
        for by in range(1, min(_FURTHEST, len(old) - 1) + 1):
            start = saved = 0
            for y in range(len(old) - by + 1):
                if y < len(old) - by and new[y] is not None and new[y] == old[y + by]:
                    saved += new[y] != old[y]
                    if saved > best and all(line is not None for line in new[start : y + by + 1]):
                        best, part = saved, (start, y + by, by)
                else:
                    start, saved = y + 1, 0
        return part

    def _scroll(self, top: int, bottom: int, by: int, wanted: dict[int, Strip], colors: ColorSystem | None) -> None:
        """Have the terminal move these rows up; what comes in is as empty as the end of what is wanted there."""
        for y in range(top, bottom + 1):  # what is to stay where it is moves, too
            if y not in wanted and (row := self._rows[y]) is not None:
                wanted[y] = row
        last = wanted.get(bottom)
        blank = None
        if self._erases and last is not None and (cells := cells_of(last, colors)):
            blank = Strip.blank(self._size.width, _only_background(last))
            self._pen.set("", cells[-1].bg)
        self._pen.write(f"\x1b[{top + 1};{bottom + 1}r\x1b[{by}S\x1b[r")
        self._rows[top : bottom + 1] = [*self._rows[top + by : bottom + 1], *([blank] * by)]


@dataclass
class MinimalUpdate(CompositorUpdate):
    """An update that is written as the difference it makes on `paper`."""

    update: CompositorUpdate
    paper: ShownRows
    size: Size

    def render_segments(self, console: Console) -> str:
        if isinstance(self.update, LayoutUpdate):
            return self.paper.draw(_of_layout(self.update), self.size, console)
        if isinstance(self.update, ChopsUpdate):
            return self.paper.draw(_of_chops(self.update), self.size, console)
        self.paper.forget()
        return self.update.render_segments(console)


def _of_layout(update: LayoutUpdate) -> Iterator[StripPiece]:
    for y, strips in enumerate(update.strips, update.region.y):
        yield y, update.region.x, Strip.join(list(strips))


def _of_chops(update: ChopsUpdate) -> Iterator[StripPiece]:
    """The same pieces that it would write itself."""
    for y, x1, x2 in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x <= x2 and end > x1:
                yield y, x, strip if x2 > x >= x1 and end <= x2 else strip.crop(0, min(end, x2) - x)


def _only_background(row: Strip) -> Style:
    """How the end of a row is filled."""
    style = row._segments[-1].style if row._segments else None
    return Style(bgcolor=style.bgcolor) if style else Style.null()


@cache
def _fills_with_background() -> bool:
    """Whether lines that scroll in have the background that is set: what terminfo calls bce."""
    try:
        import curses
    except ImportError:  # Windows has none
        return False
    with suppress(curses.error, OSError, ValueError):
        curses.setupterm(fd=sys.__stdout__.fileno() if sys.__stdout__ else 1)
        return bool(curses.tigetflag("bce") > 0)
    return False

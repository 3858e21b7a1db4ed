"""Writing a row to a terminal as the difference to what is there, with codes only where a style begins."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual.strip import Strip

_BRIDGE = 6  # cells that are the same are written again where fewer lie between two that are not: a move costs as much
_FEW_SPACES = 7  # that are written as they are
_STRANGE = "\u2e80"  # signs from here on may be joined to others, or drawn in another width than one thinks
_PLAIN_WIDE = (("\u2e80", "\ua4cf"), ("\uac00", "\ud7a3"), ("\uf900", "\ufaff"), ("\uff01", "\uff60"))


class Cell(NamedTuple):
    """A sign, empty for the second half of a wide one, and the codes of its style; `bg` are those of its background.

    A space has no others, unless they draw on it.
    """

    sign: str
    fg: str
    bg: str


class RowWriter:
    """Writes signs, and codes only where a style begins."""

    def __init__(self, erases: bool) -> None:
        self._erases = erases
        self._parts: list[str] = []
        self._strokes: list[tuple[tuple[str, str], int, int, list[Cell]]] = []  # style, row, column, cells of it
        self._fg = self._bg = ""  # the style that is set; what is drawn next often has the same

    def take(self) -> str:
        """Everything written since the last time: one style after the other, that which is set before others."""
        set_now = self._bg, self._fg
        for _, y, x, cells in sorted(self._strokes, key=lambda stroke: (stroke[0] != set_now, *stroke[:3])):
            self.write(f"\x1b[{y + 1};{x + 1}H")
            self._write_cells(cells)
        self._strokes = []
        text, self._parts = "".join(self._parts), []
        return text

    def write(self, codes: str) -> None:
        self._parts.append(codes)

    def put(self, y: int, x: int, strip: Strip, console: Console) -> None:
        """All of a strip."""
        self.set("", "")
        self.write(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}")

    def set(self, fg: str, bg: str) -> None:
        """The style of what is written next."""
        if (fg, bg) != (self._fg, self._bg):
            codes = ";".join(filter(None, ("0" if self._fg or self._bg else "", fg, bg)))
            self.write(f"\x1b[{codes}m")
            self._fg, self._bg = fg, bg

    def change(self, y: int, before: Strip | None, row: Strip, console: Console) -> None:
        """Write the cells of a row that differ; all of it where terminals disagree about the width of its signs."""
        if before is not None and before._segments == row._segments:
            return
        if before is None or not (_is_plain(before.text) and _is_plain(row.text)):
            self.put(y, 0, row, console)
            return
        new = cells_of(row, console._color_system)
        for start, end in _runs(cells_of(before, console._color_system), new):
            for first, last, style in _strokes(new, start, end):
                self._strokes.append((style, y, first, new[first:last]))

    def _write_cells(self, cells: Sequence[Cell]) -> None:
        """Many spaces are erased where the terminal fills with the background."""
        at = 0
        while at < len(cells):
            sign, fg, bg = cell = cells[at]
            if not (sign == " " and not fg and bg == self._bg and not _draws_on_spaces(self._fg)):
                self.set(fg, bg)
            same = 1
            if sign == " " and not fg:
                same = next((n for n, one in enumerate(cells[at:]) if one != cell), len(cells) - at)
            if self._erases and same > _FEW_SPACES:
                self.write(f"\x1b[{same}X" + (f"\x1b[{same}C" if at + same < len(cells) else ""))
            else:
                self.write(sign * same)
            at += same


def cells_of(strip: Strip, colors: ColorSystem | None) -> list[Cell]:
    cells: list[Cell] = []
    for text, style, _ in strip:
        fg, bg = _codes(style, colors) if style else ("", "")
        space = Cell(" ", fg if _draws_on_spaces(fg) else "", bg)
        for sign in text:
            cells.append(space if sign == " " else Cell(sign, fg, bg))
            if sign >= _STRANGE and cell_len(sign) == 2:
                cells.append(Cell("", fg, bg))
    return cells


def _strokes(cells: Sequence[Cell], start: int, end: int) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """A run in pieces of one style, (bg, fg). Spaces belong to the text before them on the same background."""
    first, style = start, (cells[start].bg, cells[start].fg)
    for x in range(start, end):
        bg, fg = cells[x].bg, cells[x].fg
        if cells[x].sign == " " and not fg and bg == style[0] and not _draws_on_spaces(style[1]):
            continue
        if (bg, fg) != style and x > first and not (bg == style[0] and not style[1]):
            yield first, x, style
            first = x
        style = bg, fg
    yield first, end, style


def _runs(old: Sequence[Cell], new: Sequence[Cell]) -> list[tuple[int, int]]:
    """Where they differ, from the first half of a wide sign to the end of one."""
    runs: list[tuple[int, int]] = []
    for x, cell in enumerate(new):
        if x < len(old) and old[x] == cell:
            continue
        start, end = x, x + 1
        while start and not new[start].sign:
            start -= 1
        while end < len(new) and not new[end].sign:
            end += 1
        if runs and start - runs[-1][1] < _BRIDGE:
            runs[-1] = runs[-1][0], max(end, runs[-1][1])
        else:
            runs.append((start, end))
    return runs


@lru_cache(4096)
def _codes(style: Style, colors: ColorSystem | None) -> tuple[str, str]:
    """Codes of a style without those of its background, and those."""
    bg = _between(Style(bgcolor=style.bgcolor), colors)
    return _between(style, colors).removesuffix(bg).removesuffix(";"), bg


def _between(style: Style, colors: ColorSystem | None) -> str:
    return style.render("\0", color_system=colors).partition("\0")[0].removeprefix("\x1b[").removesuffix("m")


@lru_cache(4096)
def _draws_on_spaces(fg: str) -> bool:
    """Underlined, reversed, crossed out, or a line around it; colours are recognised by the number before theirs."""
    codes = fg.replace("38;2;", "38:").replace("38;5;", "38:").split(";")
    return any(code in ("4", "7", "9", "21", "51", "52", "53") for code in codes)


@lru_cache(4096)
def _is_plain(text: str) -> bool:
    """Whether every terminal gives each sign the same width, one by one."""
    if text.isascii():
        return True
    return all(
        cell_len(sign) == 1 if sign < _STRANGE else any(first <= sign <= last for first, last in _PLAIN_WIDE)
        for sign in set(text)
    )

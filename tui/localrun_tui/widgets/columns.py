"""Rows of a list in columns that fill the width there is. Text in them is text: foreign markup means nothing."""

from collections.abc import Sequence

from textual.content import Content
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

from localrun.base.dataclass import dataclass
from localrun.base.sanitize import clean

GAP = 2
_FILLED = 120  # cells that columns fill; in a wider list they stay together, and take only what they need


@dataclass(frozen=True, slots=True)
class Column:
    """`width` in cells; 0 takes what the others leave. Shown where the row has `from_width` cells or more."""

    title: str
    width: int = 0
    right: bool = False
    from_width: int = 0


class Row(Visual):
    """One cell a column, and an indented line below where there is more to say."""

    def __init__(self, columns: Sequence[Column], cells: Sequence[Content], below: Content | None = None) -> None:
        self.columns = columns
        self.cells = cells
        self.below = below
        self.longest = 0  # cells of the longest text, of all rows of a list, in the column that takes the rest

    @property
    def in_rest(self) -> int:
        """Cells of the text in the column that takes the rest."""
        pairs = zip(self.columns, self.cells, strict=True)
        return next((cell.cell_length for column, cell in pairs if not column.width), 0)

    def lines(self, width: int) -> list[Content]:
        """Drawn lines, `width` cells wide."""
        shown = [(column, cell) for column, cell in zip(self.columns, self.cells, strict=True)]
        shown = [(column, cell) for column, cell in shown if width >= column.from_width]
        fixed = sum(column.width for column, _ in shown) + GAP * (len(shown) - 1)
        rest = max(min(width, max(_FILLED, fixed + self.longest)) - fixed, 1)
        cells = [_fit(cell, column.width or rest, column.right) for column, cell in shown]
        first = Content(" " * GAP).join(cells)
        if self.below is None:
            return [first]
        return [first, (Content("  ") + self.below).truncate(width, ellipsis=True)]

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        strips = [strip for line in self.lines(width) for strip in line.render_strips(width, 1, style, options)]
        return strips if height is None else strips[:height]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        return 1 if self.below is None else 2

    @property
    def plain(self) -> str:
        """All of its text, to search in."""
        return " ".join(cell.plain for cell in (*self.cells, *([self.below] if self.below else ())))


def header(columns: Sequence[Column]) -> Row:
    return Row(columns, [Content.styled(column.title, "$foreground-muted") for column in columns])


def say(text: str, style: str = "") -> Content:
    """Text from anywhere, made safe, on one line."""
    return Content.styled(clean(text, keep_newlines=False), style) if text else Content("")


def _fit(cell: Content, width: int, right: bool) -> Content:
    cell = cell.truncate(width, ellipsis=True)
    space = width - cell.cell_length
    return cell.pad_left(space) if right else cell.pad_right(space)

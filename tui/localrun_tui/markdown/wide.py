"""Lines wider than the screen: cut to a window that moves, with a mark on each side where there is more."""

from textual.content import Content

from localrun.base.dataclass import dataclass

STEP = 16  # cells that a key moves the window


@dataclass(frozen=True, slots=True)
class Wide:
    """How code and tables are laid out: `whole` as wide as they are, from cell `shift` on; else they fit the width."""

    whole: bool = False
    shift: int = 0


FITTED = Wide()


def window(lines: list[Content], width: int, shift: int) -> list[Content]:
    """`width` cells of each line from `shift` on; of a block whose widest line ends before, its end."""
    widest = max((line.cell_length for line in lines), default=0)
    if widest <= width:
        return lines
    start = min(shift, widest - width)
    left, right = Content.styled("‹", "$text-warning"), Content.styled("›", "$text-warning")
    return [_cut(line, start, width, left if start else None, right) for line in lines]


def _cut(line: Content, start: int, width: int, left: Content | None, right: Content) -> Content:
    """Cells are counted, since signs of two cells may be in it."""
    cells = [0]
    for char in line.plain:
        cells.append(cells[-1] + Content(char).cell_length)
    first = next((i for i, cell in enumerate(cells) if cell >= start + bool(left)), len(line.plain))
    more = cells[-1] > start + width
    end = start + width - more
    last = next((i for i in range(len(cells) - 1, -1, -1) if cells[i] <= end), 0)
    gap = Content(" " * max(cells[first] - start - bool(left), 0)) if first < len(cells) else Content()
    part = (left or Content()) + gap + line[first : max(last, first)]
    return part.pad_right(max(width - more - part.cell_length, 0)) + (right if more else Content())

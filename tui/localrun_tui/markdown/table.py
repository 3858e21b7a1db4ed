"""Tables in the width there is: columns shrink from the widest on, and their cells wrap; a mark says where there are
too many columns. With `Wide.whole` they are as wide as what is in them, and the window moves."""

from markdown_it.tree import SyntaxTreeNode
from textual.content import Content

from localrun_tui.markdown.inline import inline
from localrun_tui.markdown.wide import FITTED, Wide, window
from localrun_tui.markdown.wrapping import wrap

_GAP = " │ "
_NARROWEST = 4
_WORD = 10  # cells of a column where not all columns fit: most words are no longer


def table_lines(node: SyntaxTreeNode, width: int, wide: Wide = FITTED) -> list[Content]:
    """The lines of a table, no wider than `width`."""
    rows = [[_one_line(inline(cell)) for cell in row.children] for part in node.children for row in part.children]
    if not rows or not rows[0]:
        return []
    n = len(rows[0])
    rows = [(row + [Content()] * n)[:n] for row in rows]
    widths = [max(1, *(row[column].cell_length for row in rows)) for column in range(n)]
    if not wide.whole:
        widths = _widths(widths, width - len(_GAP) * (n - 1))
    rule = Content.styled("─┼─".join("─" * w for w in widths), "$foreground 30%")
    right = ["right" in str(cell.attrs.get("style", "")) for cell in node.children[0].children[0].children]
    head, *body = [_row_lines(row, widths, right) for row in rows]
    lines = [line.stylize("bold") for line in head] + [rule] + [line for row in body for line in row]
    return window(lines, width, wide.shift if wide.whole else 0)


def _widths(wanted: list[int], room: int) -> list[int]:
    """Column widths that add up to `room` at most, where that leaves every column something; else readable ones."""
    fitting = _shrunk(wanted, room, _NARROWEST)
    return fitting if sum(fitting) <= room else _shrunk(wanted, room, _WORD)


def _shrunk(wanted: list[int], room: int, narrowest: int) -> list[int]:
    widths = [min(max(w, 1), max(room, 1)) for w in wanted]
    while sum(widths) > room and max(widths) > narrowest:
        widths[widths.index(max(widths))] -= 1
    return widths


def _row_lines(cells: list[Content], widths: list[int], right: list[bool]) -> list[Content]:
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    gap = Content.styled(_GAP, "$foreground 30%")
    lines = []
    for y in range(max(map(len, wrapped))):
        parts = [column[y] if y < len(column) else Content() for column in wrapped]
        lines.append(gap.join(map(_pad, parts, widths, right)))
    return lines


def _pad(part: Content, width: int, right: bool) -> Content:
    space = width - part.cell_length
    return part.pad_left(space) if right else part.pad_right(space)


def _one_line(content: Content) -> Content:
    return Content(" ").join(content.split("\n")) if "\n" in content.plain else content

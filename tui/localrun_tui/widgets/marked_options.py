"""A list that also marks its highlighted row by a bar at the left, for eyes without colour."""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widgets import OptionList

MARK = "▌"


class MarkedOptions(OptionList):
    """Rows begin with an empty cell, which the mark takes in the highlighted one, over all of its lines."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"marked-options--mark"}
    DEFAULT_CSS = """
    MarkedOptions {
        & > .marked-options--mark { color: $primary; }
        & > .option-list--option { padding: 0 0 0 1; }
        &.-textual-compact > .option-list--option { padding: 0 0 0 1; }
    }
    """

    def on_resize(self) -> None:
        """Keep the highlighted row in view where a panel below the list takes lines from it."""
        self.scroll_to_highlight()

    def action_page_up(self) -> None:
        if self.scrollable_content_region:  # else Textual knows no lines, and fails
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        if self.scrollable_content_region:
            super().action_page_down()  # type: ignore[no-untyped-call]

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if self.highlighted is None or self._option_at(y) != self.highlighted or not strip.cell_length:
            return strip  # no cell: the list lost its width, and is drawn once more before it is laid out anew
        return _marked(strip, Style(color=self.get_component_rich_style("marked-options--mark").color))

    def _option_at(self, y: int) -> int | None:
        """Which option is drawn in line `y` of the widget."""
        line = self.scroll_offset.y + y
        return self._lines[line][0] if line < len(self._lines) else None


def _marked(strip: Strip, style: Style) -> Strip:
    """`strip` with the mark in the place of its first cell, in `style` over what this has."""
    first, rest = strip.divide([1, strip.cell_length])
    return Strip.join([Strip([Segment(MARK, (segment.style or Style()) + style) for segment in first]), rest])

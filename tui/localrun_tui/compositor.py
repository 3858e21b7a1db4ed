"""All that is known here of Textual's inside, so that an answer that grows takes little from the engine beside it."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from textual._compositor import Compositor, ReflowResult
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget


class LeanCompositor(Compositor):
    """Draws the same. Textual itself renders every line of all widgets near an update, also of those behind others."""

    def __init__(self) -> None:
        super().__init__()
        self._resized: set[Widget] = set()

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Remember who has another size: all of their places are painted next, so their own wish for that is void."""
        result = super().reflow(parent, size)
        self._resized = result.resized
        return result

    def render_update(self, *arguments: Any, **options: Any) -> Any:
        for widget in self._resized:
            widget._exchange_repaint_regions()
        self._resized = set()
        return super().render_update(*arguments, **options)

    def _render_chops(self, crop: Region, is_rendered_line: Callable[[int], bool]) -> Sequence[Mapping[int, Strip]]:
        """For each row of the screen its pieces by where they begin; what is not asked for is None."""
        cuts = self.cuts
        chops: list[dict[int, Strip | None]] = [dict.fromkeys(row[:-1]) for row in cuts]
        missing = {
            y: {x for x, end in pairwise(cuts[y]) if x < crop.right and end > crop.x}
            for y in crop.line_range
            if is_rendered_line(y)
        }
        for widget, (region, clip) in self.visible_widgets.items():  # those in front come first
            inside = region.intersection(clip)
            columns = range(inside.x, inside.right)
            rows = [y for y in inside.line_range if any(x in columns for x in missing.get(y, ()))]
            if not rows:
                continue
            part = Region(inside.x, rows[0], inside.width, rows[-1] + 1 - rows[0]).translate(-region.offset)
            strips = widget.render_lines(part)
            for y in rows:
                starts = [x for x in cuts[y] if x in columns]
                ends = [x - inside.x for x in (*starts[1:], inside.right)]
                for x, piece in zip(starts, strips[y - rows[0]].divide(ends), strict=False):
                    if x in missing[y]:
                        chops[y][x] = piece
                missing[y].difference_update(starts)
        return cast(Sequence[Mapping[int, Strip]], chops)


def paint_now(widget: Widget, region: Region) -> None:
    """`widget.refresh(region)` without the four tasks that Textual wakes, one by the other, before it paints."""
    screen = widget.screen if widget.is_attached and widget.is_mounted else None
    if screen is None or not screen.is_current or screen._layout_required or screen.app._batch_count:
        widget.refresh(region)
        return
    widget._set_dirty(region)
    screen._compositor.update_widgets(screen._dirty_widgets | {widget})
    screen._compositor_refresh()

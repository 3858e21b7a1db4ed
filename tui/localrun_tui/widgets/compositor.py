"""Our one use of Textual's private compositor, so that an answer that grows takes little from the engine beside it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from rich.segment import Segment
from textual._compositor import ChopsUpdate, Compositor, CompositorMap, ReflowResult
from textual.color import Color
from textual.dom import NoScreen
from textual.geometry import Region, Size
from textual.scrollbar import ScrollBar
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget


class LeanCompositor(Compositor):
    """Draws the same. Textual itself renders every line of all widgets near an update, also of those behind others."""

    def __init__(self) -> None:
        super().__init__()
        self._resized: set[Widget] = set()
        self._laid_out: CompositorMap = {}  # of which widgets know their sizes

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Remember who has another size: all of their places are painted next, so their own wish for that is void."""
        painted = self._painted
        self._full_map = self._laid_out
        result = super().reflow(parent, size)
        self._laid_out = self._full_map
        self._paint_moved(painted, self._laid_out)
        self._resized = result.resized
        return result

    @property
    def full_map(self) -> CompositorMap:
        """Textual makes this one anew after a scroll, maybe of a layout to come, which would find nothing moved."""
        painted = self._painted
        found = super().full_map
        self._paint_moved(painted, found)
        return found

    @property
    def _painted(self) -> CompositorMap:
        """The places that widgets have on the screen, or will have after the next paint."""
        return self._full_map if self._visible_map is None else self._visible_map

    def _paint_moved(self, before: CompositorMap, now: CompositorMap) -> None:
        """Have the places painted where a widget was or is, of those that are elsewhere now."""
        if before is now:
            return
        for widget in before.keys() | now.keys():
            old, new = before.get(widget), now.get(widget)
            if old and new and (old.region, old.clip) == (new.region, new.clip):
                continue
            regions = [geometry.visible_region for geometry in (old, new) if geometry]
            self._dirty_regions.update(region for region in regions if region)

    def render_update(self, *arguments: Any, **options: Any) -> Any:
        for widget in self._resized:
            widget._exchange_repaint_regions()
        self._resized = set()
        return super().render_update(*arguments, **options)

    def render_partial_update(self) -> ChopsUpdate | None:
        """Where all that is to be painted lies in one widget, with nothing in front, its lines are the update."""
        crop = Region.from_union(self._dirty_regions).intersection(self.size.region) if self._dirty_regions else None
        if not crop:
            return super().render_partial_update()
        for widget, (region, clip) in self.visible_widgets.items():  # those in front come first
            inside = region.intersection(clip)
            if inside.contains_region(crop):
                self._dirty_regions.clear()
                lines = zip(crop.line_range, _lines(widget, crop.translate(-region.offset)), strict=True)
                chops: Any = {y: {crop.x: line} for y, line in lines}
                ends: Any = {y: [crop.right] for y in chops}
                return ChopsUpdate(chops, [(y, crop.x, crop.right) for y in chops], ends)
            if inside.overlaps(crop):
                break
        return super().render_partial_update()

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
            if not inside.overlaps(crop):
                continue
            columns = range(inside.x, inside.right)
            rows = [y for y in inside.line_range if any(x in columns for x in missing.get(y, ()))]
            if not rows:
                continue
            part = Region(inside.x, rows[0], inside.width, rows[-1] + 1 - rows[0]).translate(-region.offset)
            strips = _lines(widget, part)
            for y in rows:
                starts = [x for x in cuts[y] if x in columns]
                ends = [x - inside.x for x in (*starts[1:], inside.right)]
                for x, piece in zip(starts, strips[y - rows[0]].divide(ends), strict=False):
                    if x in missing[y]:
                        chops[y][x] = piece
                missing[y].difference_update(starts)
        return cast(Sequence[Mapping[int, Strip]], chops)


class Growing(Widget):
    """A widget whose lines are many and change a few at a time, with nothing drawn around them but empty cells.

    Textual itself redraws them all whenever there is one more, and takes several times as long for each.
    """

    def __init__(self, classes: str) -> None:
        super().__init__(classes=classes)
        self._rows: dict[int, Strip] = {}
        self._look: object = None  # that the rows have

    @property
    def is_plain(self) -> bool:
        """Whether it looks as said now: without a border, and nothing in it selected."""
        return not self.has_focus and self.text_selection is None

    @property
    def text_selection(self) -> Selection | None:
        """The selection; None also where it was removed and is painted once more before the others move up."""
        try:
            return super().text_selection
        except NoScreen:
            return None

    def changed_lines(self, lines: Iterable[int]) -> None:
        """Redraw these lines at the next paint."""
        for y in lines:
            self._rows.pop(y, None)

    def notify_style_update(self) -> None:
        self._rows.clear()
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        if not self.is_plain:
            return super().render_lines(crop)
        look = self._size.width, self.visual_style
        if look != self._look:
            self._rows.clear()
            self._look = look
        missing = [y for y in crop.line_range if y not in self._rows]
        if missing:
            gutter, style = self.styles.gutter, self.visual_style.rich_style
            left, right = Segment(" " * gutter.left, style), Segment(" " * gutter.right, style)
            rows = _filtered(self, [Strip([left, *self.render_line(y), right]) for y in missing])
            self._rows.update(zip(missing, rows, strict=True))
        rows = [self._rows[y] for y in crop.line_range]
        return rows if crop.column_span == (0, self._size.width) else [row.crop(*crop.column_span) for row in rows]


def _lines(widget: Widget, crop: Region) -> list[Strip]:
    """Textual's own strips of these lines; it is slow with scrollbars, which have neither borders nor padding."""
    if not isinstance(widget, ScrollBar) or crop.column_span != (0, widget.size.width):
        return widget.render_lines(crop)
    return _filtered(widget, [widget.render_line(y) for y in crop.line_range])


def _filtered(widget: Widget, strips: list[Strip]) -> list[Strip]:
    """The colours that the terminal has, or none."""
    background = cast(Color, widget.visual_style.background)  # once found it is kept there
    for filter in widget.get_line_filters():
        strips = [strip.apply_filter(filter, background) for strip in strips]
    return strips


def paint_now(widget: Widget, region: Region) -> None:
    """`widget.refresh(region)` without the four tasks that Textual wakes, one by the other, before it paints."""
    screen = widget.screen if widget.is_attached and widget.is_mounted else None
    if screen is None or not screen.is_current or screen._layout_required or screen.app._batch_count:
        widget.refresh(region)
        return
    widget._set_dirty(region)
    screen._compositor.update_widgets(screen._dirty_widgets | {widget})
    screen._compositor_refresh()

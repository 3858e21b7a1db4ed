"""Textual's compositor, asked for less: an update renders the lines it shows and no others."""

from collections.abc import Callable, Mapping, Sequence

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class LeanCompositor(Compositor):
    """Draws the same. Textual itself renders every line of all widgets near an update, also of those behind others."""

    def _render_chops(self, crop: Region, is_rendered_line: Callable[[int], bool]) -> Sequence[Mapping[int, Strip]]:
        """For each row of the screen its pieces by where they begin; only rows that are asked for have any."""
        cuts = self.cuts
        chops: list[dict[int, Strip]] = [{} for _ in cuts]
        wanted = {y for y in crop.line_range if is_rendered_line(y)}  # rows with a piece missing
        for widget, (region, clip) in self.visible_widgets.items():  # those in front come first
            inside = region.intersection(clip)
            rows = [y for y in inside.line_range if y in wanted]
            if not rows or not inside.width:
                continue
            part = Region(inside.x - region.x, rows[0] - region.y, inside.width, rows[-1] + 1 - rows[0])
            strips = widget.render_lines(part)
            for y in rows:
                starts = [x for x in cuts[y] if inside.x <= x < inside.right]
                if any(x not in chops[y] for x in starts):
                    ends = [x - inside.x for x in (*starts[1:], inside.right)]
                    for x, piece in zip(starts, strips[y - rows[0]].divide(ends), strict=False):
                        chops[y].setdefault(x, piece)
                    if len(chops[y]) == len(cuts[y]) - 1:
                        wanted.discard(y)
        return [dict(sorted(chop.items())) for chop in chops]

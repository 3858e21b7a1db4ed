"""A bar of memory: weights, the KV cache of one chat with the blocks that a load keeps spare, and the rest, against
what is free."""

from textual.content import Content

from localrun.base.units import gib
from localrun.fit.estimate import FitRow

WIDTH = 36  # cells: its words are beside it on a screen of 60


def gauge(row: FitRow) -> Content:
    """Two lines: the bar, and what its parts are, the program at most. What is beyond the free memory is drawn in the
    colour of errors."""
    rest = row.total_bytes - row.weights_bytes - row.kv_bytes
    needed = row.total_bytes - row.mapped_bytes
    parts = [
        ("weights ", row.weights_bytes - row.mapped_bytes, "$primary", "█"),
        (f"KV {row.ctx:,} tokens + spare ", row.kv_bytes, "$accent", "▓"),
        ("program ≤", rest, "$secondary", "▒"),
    ]
    scale = max(row.budget_bytes, needed, 1)
    line, used = Content(""), 0
    for _, size, style, sign in parts:
        start, end = round(WIDTH * used / scale), round(WIDTH * (used + size) / scale)
        line += Content.styled(sign * (end - start), style)
        used += size
    free = WIDTH - line.cell_length
    line += Content.styled("░" * free, "$foreground 25%")
    over = needed - row.budget_bytes
    word = f"  {gib(over)} too much" if over > 0 else f"  {gib(-over)} left"
    line += Content.styled(word, "$text-error" if over > 0 else "$foreground-muted")
    if row.mapped_bytes:
        line += Content.styled(f", {gib(row.mapped_bytes)} on disk", "$text-warning")
    largest = max(size for _, size, _, _ in parts)
    legend = [
        Content.assemble((sign, style), (f" {name}{gib(size, largest)}", "$foreground-muted"))
        for name, size, style, sign in parts
    ]
    return line + Content("\n") + Content("  ").join(legend)

"""Small pictures in text: bars and shares that also read without colour."""

from textual.content import Content

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(share: float, width: int, style: str = "$primary", rest: str = "$foreground 15%") -> Content:
    """A bar of `width` cells, `share` of it filled, to an eighth of a cell."""
    width = max(width, 0)
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, part = divmod(eighths, 8)
    filled = "█" * full + (_EIGHTHS[part] if part else "")
    return Content.assemble((filled, style), ("░" * (width - len(filled)), rest))


def meter(used: int, total: int, width: int) -> Content:
    """How full the context is; the colour says when it becomes tight, and so does a mark."""
    share = min(used / total, 1.0) if total else 0.0  # of a chat that rolls on, more was read than is held
    style = "$error" if share >= 0.95 else "$warning" if share >= 0.8 else "$success"
    mark = " !" if share >= 0.95 else ""
    return bar(share, width, style) + Content.styled(f" {share:.0%}{mark}", style)

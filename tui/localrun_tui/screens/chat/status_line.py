"""One line below the chat: what goes on now, how fast, and how full the context is."""

import time
from collections.abc import Mapping
from typing import Any

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from localrun.base.events import ModelInfo, Prefill
from localrun.base.sanitize import clean
from localrun.base.units import gib, ms, tps
from localrun.diagnose.verdict import verdict
from localrun.fit.rates import Rates
from localrun_tui.state.turn import Turn
from localrun_tui.widgets.meters import meter


class StatusLine(Widget):
    """Left: what goes on. Right: the context and the KV cache, as much as there is room for."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._left: list[Content] = []
        self._right: list[Content] = []

    def show(self, left: list[Content], right: list[Content]) -> None:
        """Parts in the order of their weight: the last ones are left out first where there is no room."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1

    def render(self) -> Content:
        width = self.size.width
        left, right = list(self._left), list(self._right)
        while len(left) + len(right) > 2 and _length(left) + _length(right) + 2 > width:
            (right if len(right) > 1 else left).pop()
        line, end = _join(left), _join(right)
        gap = max(width - line.cell_length - end.cell_length, 1)
        return (line + Content(" " * gap) + end).truncate(width, ellipsis=True)


def waiting_parts(n: int, held: bool) -> list[Content]:
    """How many messages wait for the answer, or until the user says that they may go."""
    if not n:
        return []
    words = "1 message" if n == 1 else f"{n} messages"
    does = "held: ↑ shows them" if held else "waits" if n == 1 else "wait"
    return [Content.styled(f"{words} {does}", "$text-accent")]


def live_parts(turn: Turn) -> list[Content]:
    """What an answer on its way is doing."""
    now = time.monotonic()
    if turn.first_token is None:
        return prefill_parts(turn.prefill, now - turn.began)
    seconds = now - turn.first_token
    rate = (turn.n_tokens - 1) / seconds if seconds > 0.2 and turn.n_tokens > 1 else 0.0
    parts = [Content.styled("● writing", "$success")]
    if rate:
        parts.append(Content(tps(rate)))
    return [*parts, Content(f"{turn.n_tokens:,} tokens"), Content(f"first token {ms(1000 * (turn.ttft or 0.0))}")]


def prefill_parts(prefill: Prefill | None, seconds: float) -> list[Content]:
    """How far the prompt is read."""
    if prefill is None or not prefill.total:
        return [Content.styled("● starting", "$text-warning")]
    parts = [Content.styled(f"● reading {prefill.done / prefill.total:.0%}", "$text-warning")]
    left = eta(prefill, seconds)
    return parts if left is None else [*parts, Content(f"{ms(left * 1000)} left")]


def eta(prefill: Prefill, seconds: float) -> float | None:
    """Seconds until the prompt is read; None before anything was computed."""
    computed, left = prefill.done - prefill.cached, prefill.total - prefill.done
    return seconds / computed * left if computed > 0 and left > 0 else None


def stats_parts(stats: Mapping[str, Any], rates: Rates | None) -> list[Content]:
    """The figures of a finished answer, as far as the engine told them."""
    if not stats.get("completion_tokens"):
        return []
    parts = []
    if rate := stats.get("decode_tps"):
        parts.append(Content(tps(float(rate))))
    parts.append(Content(f"first token {ms(float(stats.get('ttft_ms') or 0.0))}"))
    cached, prompt = stats.get("cached_tokens"), stats.get("prompt_tokens")
    if cached is not None and prompt is not None:
        parts.append(Content(f"{cached:,}/{prompt:,} reused"))
    found = verdict(stats, rates)
    if found and found.bound:
        parts.append(Content.styled(f"{found.phase} is {found.bound}", "$foreground-muted"))
    return parts


def context_parts(used: int, info: ModelInfo | None, kv_bytes: int) -> list[Content]:
    """How full the context is, and what it takes; of a remote model only what its server says."""
    if info is None:
        return []
    if info.ctx:
        parts = [Content.assemble("ctx ", meter(used, info.ctx, 8)), Content(f"{used:,}/{info.ctx:,}")]
    else:
        parts = [Content(f"{used:,} tokens")] if used else []
    codec = clean(info.kv_codec, keep_newlines=False)
    if codec:
        parts.append(Content(f"KV {gib(kv_bytes)} {codec}" if kv_bytes else f"KV {codec}"))
    return parts


def _join(parts: list[Content]) -> Content:
    return Content.styled("  ·  ", "$foreground 40%").join(parts)


def _length(parts: list[Content]) -> int:
    return _join(parts).cell_length

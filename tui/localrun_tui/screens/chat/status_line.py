"""One line below the chat in plain words: progress, rate, and room in the context."""

import time
from collections.abc import Mapping
from typing import Any

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from localrun.base.events import ModelInfo
from localrun.base.image_words import looking_words
from localrun.base.units import ms, tps
from localrun.chat.turn import Answer
from localrun.diagnose.facts import first_token_ms
from localrun_tui.widgets.meters import meter


class StatusLine(Widget):
    """Left: progress. Right: the room in the context, as far as it fits."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._left: list[Content] = []
        self._right: list[Content] = []

    def show(self, left: list[Content], right: list[Content]) -> None:
        """Parts by importance: the last ones are left out first where there is no room."""
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
    """Number of messages that wait for the answer, or for the user."""
    if not n:
        return []
    words, shown, wait = ("1 message", "it", "waits") if n == 1 else (f"{n} messages", "them", "wait")
    does = f"held: ↑ shows {shown}" if held else wait
    return [Content.styled(f"{words} {does}", "$text-accent")]


def live_parts(answer: Answer) -> list[Content]:
    """Progress of an answer under way."""
    now = time.monotonic()
    if answer.phase == "calling":
        return [Content.styled("● calling", "$text-warning"), _tokens(answer.n_tokens)]
    if answer.image is not None and answer.phase == "looking":
        return [Content.styled(f"● {looking_words(answer.image)}", "$text-warning")]
    if answer.wrote_from is None:
        return _prompt_parts(answer, now)
    parts = [Content.styled("● writing", "$success")]
    if rate := answer.tps(now):
        parts.append(Content(tps(rate)))
    return [*parts, _tokens(answer.n_tokens), Content(f"began after {ms(1000 * (answer.ttft or 0.0))}")]


def phase_words(phase: str) -> str:
    """A phase for display."""
    return "waiting for the server" if phase == "waiting" else phase


def _prompt_parts(answer: Answer, now: float) -> list[Content]:
    """How far the prompt is read; the phase before that is known."""
    prompt = answer.prompt
    if prompt is None or not prompt.last.total:
        return [Content.styled(f"● {phase_words(answer.phase)}", "$text-warning")]
    parts = [Content.styled(f"● reading {prompt.last.done / prompt.last.total:.0%}", "$text-warning")]
    left = prompt.seconds_left(now)
    return parts if left is None else [*parts, Content(f"{ms(left * 1000)} left")]


def stats_parts(stats: Mapping[str, Any]) -> list[Content]:
    """The main figures of a finished answer, as far as known; the inspector has the others."""
    if not stats.get("completion_tokens"):
        return []
    parts = []
    if rate := stats.get("decode_tps"):
        parts.append(Content(tps(float(rate))))
    parts.append(_tokens(int(stats["completion_tokens"])))
    parts.append(Content(f"began after {ms(first_token_ms(stats))}"))
    return parts


def context_parts(used: int, info: ModelInfo | None) -> list[Content]:
    """How much room is left in the context; of a remote model only what its server says."""
    if info is None:
        return []
    if not info.ctx:
        return [_tokens(used)] if used else []
    left = max(info.ctx - used, 0)
    return [Content.assemble(meter(used, info.ctx, 8), " ", f"{left:,} left"), Content(f"of {info.ctx:,} tokens")]


def _tokens(n: int) -> Content:
    return Content(f"{n:,} token{'' if n == 1 else 's'}")


def _join(parts: list[Content]) -> Content:
    return Content.styled("  ·  ", "$foreground 40%").join(parts)


def _length(parts: list[Content]) -> int:
    return _join(parts).cell_length

"""Requests under way as table rows: client, progress, reason for waiting, time left."""

import time
from collections.abc import Sequence
from dataclasses import asdict

from localrun.base.dataclass import dataclass
from localrun.base.request import Json
from localrun.server.monitor.live import LiveRequest


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One request, for the screen and for JSON. Times in seconds, rates in tokens a second."""

    number: int
    client: str
    protocol: str
    model: str
    session: str
    phase: str
    waits_for: str  # reason for waiting; empty while it runs
    prompt_tokens: int
    cached_tokens: int
    read_tokens: int
    written_tokens: int
    rate: float | None  # of its current phase
    seconds: float  # since it arrived
    seconds_left: float | None  # of reading; of writing only where the answer has a longest length

    def as_json(self) -> Json:
        return asdict(self)


def rows_of(requests: Sequence[LiveRequest], now: float | None = None) -> list[RequestRow]:
    """The requests, the oldest first. `now` is on the monotonic clock."""
    moment = time.monotonic() if now is None else now
    return [_row(live, requests, moment) for live in sorted(requests, key=lambda live: live.number)]


def _row(live: LiveRequest, all_of_them: Sequence[LiveRequest], now: float) -> RequestRow:
    rate, left = _pace(live, now)
    return RequestRow(
        number=live.number,
        client=live.client,
        protocol=live.protocol,
        model=live.model,
        session=live.session,
        phase=live.phase,
        waits_for=_waits_for(live, all_of_them),
        prompt_tokens=live.prompt_tokens,
        cached_tokens=live.cached_tokens,
        read_tokens=live.read_tokens,
        written_tokens=live.written_tokens,
        rate=None if rate is None else round(rate, 2),
        seconds=round(now - live.began, 3),
        seconds_left=None if left is None else round(left, 1),
    )


def _pace(live: LiveRequest, now: float) -> tuple[float | None, float | None]:
    """Rate of the current phase in tokens a second, and its seconds left."""
    if live.phase == "reading" and live.read_since is not None and now > live.read_since:
        rate = (live.read_tokens - live.cached_tokens) / (now - live.read_since)
        return (rate, (live.prompt_tokens - live.read_tokens) / rate) if rate > 0 else (None, None)
    if live.phase == "writing" and live.first_token is not None and live.written_tokens > 1 and now > live.first_token:
        rate = (live.written_tokens - 1) / (now - live.first_token)
        left = None if live.max_tokens is None else max(0, live.max_tokens - live.written_tokens) / rate
        return rate, left
    return None, None


def _waits_for(live: LiveRequest, all_of_them: Sequence[LiveRequest]) -> str:
    if live.phase == "waiting for the model":
        others = sum(other.phase in ("reading", "writing", "queued") for other in all_of_them)
        return f"{others} answer{'s' * (others > 1)} of another model" if others else "the model to load"
    if live.phase == "queued":
        ahead = sum(other.number < live.number and other is not live for other in all_of_them)
        return f"its turn, {ahead} before it" if ahead else "its turn"
    return ""

"""Waiting time that a busy hub asks for: `Retry-After`, and the `RateLimit` headers of the IETF drafts.

Retry-After: 55                               or Thu, 26 Nov 2026 18:00:00 GMT
RateLimit: "api";r=0;t=55, "day";r=9;t=3600   requests that remain, and the seconds until there are new ones
RateLimit: limit=500, remaining=0, reset=55   of an older draft, as is RateLimit-Reset: 55
"""

import email.utils
import math
import re
import time
from email.message import Message

MOST_SECONDS = 366 * 86400.0  # beyond, a number means nothing
_NUMBER = r"\s*=\s*\"?(\d{1,12}(?:\.\d{1,9})?)"
_REMAINING = re.compile(rf"(?<![\w-])(?:r|remaining){_NUMBER}", re.IGNORECASE)
_SECONDS = re.compile(rf"(?<![\w-])(?:t|reset){_NUMBER}", re.IGNORECASE)
_QUOTED_NAME = re.compile(r'(?<!=)"[^"]*"')  # of a policy: it may hold whatever else means something
_PLAIN = re.compile(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*(?:;.*)?")
_EPOCH = 1e9  # a Reset as large as that is a time, in seconds since 1970


def seconds_to_wait(headers: Message, now: float | None = None, is_limit: bool = True) -> float | None:
    """Seconds until the next request, 1 at least; None where the headers say nothing usable.

    RateLimit comes with every response, and concerns this one only where it `is_limit`: status 429.
    """
    # The hub's own clock, which ours may differ from.
    clock = _date(headers.get("Date")) or (time.time() if now is None else now)
    seconds = _retry_after(headers.get("Retry-After", ""), clock)
    if seconds is None and is_limit:
        seconds = _rate_limit(", ".join(headers.get_all("RateLimit", [])))
    for name in ("RateLimit-Reset", "X-RateLimit-Reset"):
        if is_limit and seconds is None and (match := _PLAIN.fullmatch(headers.get(name, ""))):
            seconds = float(match[1]) - (clock if float(match[1]) > _EPOCH else 0.0)
    return None if seconds is None or seconds > MOST_SECONDS else max(1.0, float(math.ceil(seconds)))


def _retry_after(text: str, clock: float) -> float | None:
    if match := _PLAIN.fullmatch(text):
        return float(match[1])
    date = _date(text)
    return None if date is None else date - clock


def _rate_limit(text: str) -> float | None:
    """The longest wait of the policies without a remaining request; of all policies where none is exhausted."""
    by_remaining: dict[bool, list[float]] = {True: [], False: []}
    text = _QUOTED_NAME.sub("", text)
    draft7 = "reset" in text.lower()
    for policy in [text] if draft7 else text.split(","):
        if seconds := _SECONDS.search(policy):
            remaining = _REMAINING.search(policy)
            by_remaining[remaining is not None and float(remaining[1]) > 0].append(float(seconds[1]))
    return max(by_remaining[False] or by_remaining[True], default=None)


def _date(text: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None

"""Logprobs in the chunks of a server: as chats have them, and as raw prompts do."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from localrun.base.check import MAX_LOGPROBS
from localrun.base.events import Channel, Token, TokenLogprob, TopLogprob
from localrun.base.request import Json, Request

FIELDS = ("logprobs", "top_logprobs")  # of a request
UNKNOWN_ID = -1  # most servers tell the text of a token only


def asking_fields(request: Request, is_chat: bool) -> Json:
    """Fields of a request that ask for logprobs; none where they are not wanted."""
    if request.logprobs is None:
        return {}
    return {"logprobs": True, "top_logprobs": request.logprobs} if is_chat else {"logprobs": request.logprobs}


def logprobs_of(said: Any) -> tuple[TokenLogprob, ...]:
    """The tokens of a choice's `logprobs`; none for any other value."""
    if not isinstance(said, dict):
        return ()
    if isinstance(content := said.get("content"), list):
        return tuple(_token(entry) for entry in content if isinstance(entry, dict))
    columns = [values if isinstance(values := said.get(name), list) else [] for name in _COLUMNS]
    return tuple(_of_row(*row) for row in zip_longest(*columns) if isinstance(row[0], str))


def with_logprobs(tokens: Iterable[Token], logprobs: Iterable[TokenLogprob]) -> Iterator[Token]:
    """The tokens of a chunk with their logprobs; those that its text has no piece for come with an empty one."""
    channel: Channel = "answer"
    for token, logprob in zip_longest(tokens, logprobs):
        channel = token.channel if token else channel
        yield replace(token, logprob=logprob) if token else Token(None, "", channel, logprob)


_COLUMNS = ("tokens", "token_logprobs", "top_logprobs")


def _of_row(text: str, logprob: Any, top: Any) -> TokenLogprob:
    """A token of a raw prompt's answer, whose alternatives are texts with their logprobs."""
    others = [{"token": other, "logprob": value} for other, value in top.items()] if isinstance(top, dict) else []
    return _token({"token": text, "logprob": logprob, "top_logprobs": others})


def _token(entry: Json) -> TokenLogprob:
    others = entry.get("top_logprobs")
    found = [_top(other) for other in (others if isinstance(others, list) else ()) if isinstance(other, dict)]
    top = sorted((other for other in found if other), key=lambda other: -other.logprob)[:MAX_LOGPROBS]
    return TokenLogprob(_id(entry), _number(entry), tuple(top), _piece(entry))


def _top(entry: Json) -> TopLogprob | None:
    logprob = _number(entry)
    return None if logprob is None else TopLogprob(_id(entry), logprob, _piece(entry))


def _id(entry: Json) -> int:
    number = entry.get("id")
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 31:
        return number
    return UNKNOWN_ID


def _number(entry: Json) -> float | None:
    """A logprob; servers send a large negative number, or none, for a token that could not come."""
    value = entry.get("logprob")
    return float(value) if isinstance(value, int | float) and math.isfinite(value) and value <= _ROUNDED else None


_ROUNDED = 1e-3  # above 0, by rounding


def _piece(entry: Json) -> bytes:
    raw = entry.get("bytes")
    if isinstance(raw, list) and all(isinstance(n, int) and 0 <= n < 256 for n in raw):
        return bytes(raw)
    text = entry.get("token")
    return text.encode("utf-8", "replace") if isinstance(text, str) else b""

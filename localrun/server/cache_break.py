"""Why a prompt was not cached: the first difference between a client's request and its previous one.

A client that sends a whole conversation each time may change its beginning without meaning to: a date, a reminder, a
billing header. Everything behind that place is read again, and no log of a client shows it.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from localrun.base.dataclass import dataclass
from localrun.base.events import Completion
from localrun.base.request import Json
from localrun.base.tool_choice import listed_tools
from localrun.server.inference import InferenceRequest

Kind = Literal["system", "tools", "message", "shorter", "evicted", "model"]
REMEMBERED = 64  # requests
CONTEXT_CHARS = 40  # of a text on either side of the change
_MAX_CHARS = 1 << 22  # of the messages that are remembered, each request


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """`at_token` is the first that had to be computed; `message_index` counts from 0; `before` and `after` are the text
    around the change, then and now."""

    kind: Kind
    at_token: int
    message_index: int | None = None
    role: str = ""
    before: str = ""
    after: str = ""

    def as_json(self) -> Json:
        return {name: value for name, value in asdict(self).items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class _Asked:
    client: str
    session: str
    model: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]


class LastRequests:
    """The latest requests of clients, to compare with their next ones."""

    def __init__(self) -> None:
        self._asked: OrderedDict[int, _Asked] = OrderedDict()
        self._number = 0

    def compare(self, client: str, asked: InferenceRequest, completion: Completion) -> CacheBreak | None:
        """Why no more of the prompt was cached; None where nothing could be, or everything was. Remembers the request
        in place of the one that it continues."""
        request = asked.requests[0]
        tools = tuple(listed_tools(request))
        now = _Asked(client, asked.session or asked.chain, completion.model, request.messages, tools)
        key = self._nearest(now)
        before = None if key is None else self._asked.pop(key)
        if sum(len(str(message.get("content"))) for message in now.messages) <= _MAX_CHARS:
            self._number += 1
            self._asked[self._number] = now
        while len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)
        cached = completion.cached_tokens
        if before is None or cached is None or cached >= (completion.prompt_tokens or 0) - 1:
            return None
        was_evicted = completion.meanwhile is not None and completion.meanwhile.evicted
        return _difference(before, now, cached) or (CacheBreak("evicted", cached) if was_evicted else None)

    def _nearest(self, now: _Asked) -> int | None:
        """The previous request of the session, else that of this client with the most messages in common."""
        best, key = 0, None
        for number, asked in self._asked.items():
            if asked.client != now.client or asked.session != now.session:
                continue
            same = sum(a == b for a, b in zip(asked.messages, now.messages, strict=False)) + bool(now.session)
            if same >= max(1, best):
                best, key = same, number
        return key


def _difference(before: _Asked, now: _Asked, cached: int) -> CacheBreak | None:
    if before.model != now.model:
        return CacheBreak("model", cached, before=before.model, after=now.model)
    if before.tools != now.tools:
        return CacheBreak("tools", cached)
    for index, (old, new) in enumerate(zip(before.messages, now.messages, strict=False)):
        if old == new:
            continue
        role = str(new.get("role"))
        kind: Kind = "system" if role in ("system", "developer") else "message"
        return CacheBreak(kind, cached, index, role, *_around(_text(old), _text(new)))
    if len(now.messages) < len(before.messages):
        return CacheBreak("shorter", cached, len(now.messages))
    return None


def _around(old: str, new: str) -> tuple[str, str]:
    """Both texts around the first place where they differ."""
    at = _common(old, new)
    start = max(0, at - CONTEXT_CHARS)
    return old[start : at + CONTEXT_CHARS], new[start : at + CONTEXT_CHARS]


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else str(content or "")

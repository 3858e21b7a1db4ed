"""Diagnostics of Anthropic's clients: why a prompt was not cached, compared with an earlier message."""

from collections import OrderedDict

from localrun.base.events import Completion
from localrun.base.request import Json
from localrun.server.request.json_body import Body

REMEMBERED = 1_024  # messages
_REASONS = {
    "model": "model_changed",
    "system": "system_changed",
    "tools": "tools_changed",
    "message": "messages_changed",
    "shorter": "messages_changed",
    "evicted": "unavailable",
}


class SentMessages:
    """Token counts of prompt and answer of the latest messages, by id."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, int] = OrderedDict()

    def put(self, message_id: str, n_tokens: int) -> None:
        self._tokens[message_id] = n_tokens
        if len(self._tokens) > REMEMBERED:
            self._tokens.popitem(last=False)

    def get(self, message_id: str) -> int | None:
        return self._tokens.get(message_id)


class CacheDiagnostics:
    """The `diagnostics` of one answer: `pending` before it is done, `found` after; None: nothing to report."""

    def __init__(self, body: Body, sent: SentMessages) -> None:
        self._sent, self._previous = sent, body.inner("diagnostics").text("previous_message_id")
        self.pending: Json | None = {"cache_miss_reason": None} if self._previous else None
        self.found: Json | None = None

    def end(self, message_id: str, completion: Completion, figures: Json | None) -> None:
        """Fill in the result of an answer; `figures`: its `localrun` object, which says where the prompt differs."""
        prompt, cached = completion.prompt_tokens or 0, completion.cached_tokens or 0
        if self._previous:
            before = self._sent.get(self._previous)
            broken = (figures or {}).get("cache_break")
            if before is None:
                self.found = {"cache_miss_reason": {"type": "previous_message_not_found"}}
            elif broken:
                reason = _REASONS[broken["kind"]]
                missed = {} if reason == "unavailable" else {"cache_missed_input_tokens": min(before, prompt) - cached}
                self.found = {"cache_miss_reason": {"type": reason, **missed}}
        self._sent.put(message_id, prompt + completion.completion_tokens)

"""Requests under way, as `localrun top` shows them: who asks, how far the answer is, and why it waits."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Literal, assert_never

from localrun.base.dataclass import dataclass
from localrun.base.events import (
    Accepted,
    Completion,
    Done,
    Event,
    ImageProgress,
    Loop,
    Prefill,
    PromptLogprobs,
    Token,
    ToolCallDelta,
)
from localrun.server.inference import InferenceRequest
from localrun.server.refusal import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest

Phase = Literal["waiting for the model", "queued", "reading", "writing", "done"]
DONE, LEFT = "done", "left"  # outcomes, beside the codes of refusals
MAX_NAME = 200  # characters of a name that a client sends: `top` takes 4 MB of all of them
_numbers = itertools.count(1)


@dataclass(eq=False, slots=True)
class LiveRequest:
    """One request. Times are of the monotonic clock, in seconds."""

    protocol: str  # the requested path
    client: str  # its name for itself
    model: str
    session: str
    number: int = field(default_factory=lambda: next(_numbers))
    began: float = field(default_factory=time.monotonic)
    phase: Phase = "waiting for the model"
    load_ms: float = 0.0  # waited for the model
    prompt_tokens: int = 0
    cached_tokens: int = 0
    read_tokens: int = 0
    written_tokens: int = 0
    max_tokens: int | None = None
    read_since: float | None = None
    first_token: float | None = None
    cache_break: str = ""  # the change since the previous request, where not all was cached
    outcome: str = ""  # how it ended
    completion: Completion | None = None
    cancel: Callable[[], object] = lambda: None  # it ends with what has been said
    refuse: Callable[[Refusal], object] = lambda refusal: None  # it ends with an error
    raise_priority: Callable[[], object] = lambda: None  # it goes before lower classes

    @staticmethod
    def of(request: "HttpRequest", asked: InferenceRequest) -> "LiveRequest":
        client = request.headers.get("user-agent", "").encode("latin-1").decode("utf-8", "replace")[:MAX_NAME]
        longest = asked.requests[0].max_tokens if asked.requests else None
        return LiveRequest(
            request.url.path, client, asked.model[:MAX_NAME], asked.session[:MAX_NAME], max_tokens=longest
        )

    def got_model(self, name: str) -> None:
        """Note that the model is loaded."""
        self.phase, self.model, self.load_ms = "queued", name, 1000 * (time.monotonic() - self.began)

    def take(self, event: Event) -> None:
        """Follow an answer. Of several to one prompt the latest event counts."""
        match event:
            case Accepted(prompt_tokens):
                self.phase, self.prompt_tokens = "queued", prompt_tokens
            case Prefill(done, cached, total):
                self.phase, self.read_tokens, self.cached_tokens, self.prompt_tokens = "reading", done, cached, total
                self.read_since = self.read_since or time.monotonic()
            case Token():
                self.phase, self.written_tokens = "writing", self.written_tokens + 1
                self.read_tokens = self.prompt_tokens
                self.first_token = self.first_token or time.monotonic()
            case ImageProgress():
                self.phase = "reading"
            case PromptLogprobs() | ToolCallDelta() | Loop():
                pass
            case Done(completion):
                self.completion = completion
            case _:
                assert_never(event)

    @property
    def ended(self) -> str:
        """Outcome in words."""
        return {"": "failed", LEFT: "the client left"}.get(self.outcome, self.outcome)

    def end(self, outcome: str) -> None:
        self.phase, self.outcome = "done", outcome


class Registry:
    """All requests under way. `ended` is called with each that is over."""

    def __init__(self, ended: Callable[[LiveRequest], None] = lambda live: None) -> None:
        self.requests: dict[int, LiveRequest] = {}
        self._ended = ended

    @contextmanager
    def holding(self, live: LiveRequest) -> Iterator[None]:
        """Register a request while it is under way."""
        self.requests[live.number] = live
        try:
            yield
        finally:
            del self.requests[live.number]
            self._ended(live)

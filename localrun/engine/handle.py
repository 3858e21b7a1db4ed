"""Handle of a generation under way, for its caller."""

import queue
from collections.abc import Iterator
from dataclasses import field
from typing import Protocol

from localrun.base.dataclass import dataclass
from localrun.base.errors import EngineError, LocalrunError
from localrun.base.events import ImageProgress, Loop, Prefill, PromptLogprobs, TokenLogprob
from localrun.engine.generation import GenerationState

WAIT_SECONDS = 0.5  # without an event, before a check that the engine is alive


@dataclass(frozen=True, slots=True)
class NewToken:
    """The engine chose a token that belongs to the answer, or one that ends it, for its logprobs."""

    token_id: int
    logprob: TokenLogprob | None = None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A generation ended; its GenerationState holds the figures."""

    sequence: GenerationState


LastEvent = Finished | LocalrunError
EngineEvent = ImageProgress | Prefill | PromptLogprobs | NewToken | Loop | Finished | LocalrunError


class Host(Protocol):
    """The engine, as a handle of one of its generations sees it."""

    def start(self, handle: "GenerationHandle") -> None: ...

    def interrupt(self) -> None:
        """Have it look at cancellations and priorities now."""

    def why_gone(self) -> LocalrunError | None:
        """Why no more events can come; None as long as they can."""


@dataclass(eq=False, slots=True)
class GenerationHandle:
    """`start` it, iterate it for its events, `cancel` or `raise_priority` it from any thread."""

    sequence: GenerationState
    engine: Host
    events: "queue.SimpleQueue[EngineEvent]" = field(default_factory=queue.SimpleQueue)
    announced: bool = False  # the count of cached tokens was sent
    is_over: bool = False  # its last event is among `events`, or has been read

    def put(self, event: EngineEvent) -> None:
        """Called by the engine."""
        self.is_over = self.is_over or isinstance(event, LastEvent)
        self.events.put(event)

    def __iter__(self) -> Iterator[ImageProgress | Prefill | PromptLogprobs | NewToken | Loop | Finished]:
        while True:
            event = self._next()
            if isinstance(event, LocalrunError):
                raise event
            yield event
            if isinstance(event, Finished):
                return

    def start(self) -> None:
        """Have the engine compute it; before that there are no events."""
        self.engine.start(self)

    def cancel(self) -> None:
        """End this generation and no other; nothing happens to one that is over."""
        if not self.is_over:
            self.sequence.cancelled.set()
            self.engine.interrupt()

    def raise_priority(self) -> None:
        """Put this generation into the highest class."""
        self.sequence.raised.set()
        self.engine.interrupt()

    def _next(self) -> EngineEvent:
        why: LocalrunError | None = None
        while True:
            try:
                return self.events.get(timeout=0 if why else WAIT_SECONDS)
            except queue.Empty:
                if why:
                    raise why from None
                why = self.engine.why_gone()  # what was put before that is looked for once more


def as_localrun_error(error: Exception) -> LocalrunError:
    """A new error for each caller: one that is raised twice collects both tracebacks."""
    if isinstance(error, LocalrunError):
        return error.twin()
    if isinstance(error, MemoryError):
        return EngineError("memory ran out during a step", "try a smaller context")
    failure = EngineError(f"the engine failed: {type(error).__name__}: {error}", "please report this")
    failure.__cause__ = error
    return failure

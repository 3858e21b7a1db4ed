"""The engine client: one interface for CLI, app and server, wherever the engine runs."""

from collections.abc import Callable, Iterator
from typing import Protocol

from localrun.base.events import Event, ModelInfo
from localrun.base.request import Request
from localrun.base.views import CacheView, PromptView


class Generation:
    """One answer under way: iterate it for its events, the last of which is Done; `cancel` or `raise_priority` it from
    any thread.

    What was generated until a cancellation is kept, and no other answer is touched. One without references is
    cancelled.
    """

    def __init__(
        self, events: Iterator[Event], cancel: Callable[[], None], raise_priority: Callable[[], None] = lambda: None
    ) -> None:
        self._events, self._cancel, self._raise_priority = events, cancel, raise_priority

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def cancel(self) -> None:
        self._cancel()

    def raise_priority(self) -> None:
        """Put it into the highest class, where the engine has classes."""
        self._raise_priority()

    def __del__(self) -> None:
        self._cancel()


class Cancellation:
    """Cancel a generation that may not have begun, or raise its priority, from any thread."""

    def __init__(self) -> None:
        self._generation: Generation | None = None
        self.is_cancelled = self.is_raised = False

    def watch(self, generation: Generation) -> Generation:
        """The generation to cancel."""
        self._generation = generation
        if self.is_raised:
            generation.raise_priority()
        if self.is_cancelled:  # before there was anything to cancel
            generation.cancel()
        return generation

    def cancel(self) -> None:
        self.is_cancelled = True
        if (generation := self._generation) is not None:
            generation.cancel()

    def raise_priority(self) -> None:
        self.is_raised = True
        if (generation := self._generation) is not None:
            generation.raise_priority()


class EngineClient(Protocol):
    """One loaded model.

    Constructors block until it is loaded; what their `progress(done_bytes, total_bytes)` raises gives the load up.
    """

    @property
    def info(self) -> ModelInfo: ...

    def generate(self, request: Request) -> Generation:
        """Answer a request. Any number may be under way; each blocks between its events, so faces give it a thread.

        Here or at the first event LocalrunError says what is wrong with it. EngineDiedError comes after the tokens that
        still arrived; the next call starts a new engine.
        """
        ...

    def preview(self, request: Request, pieces: bool = False) -> PromptView | None:
        """How a request would be tokenized and cached, without computing it; None where the engine does not report it.
        Raises LocalrunError for one that cannot be answered."""
        ...

    def view(self) -> CacheView | None:
        """Contents of the KV cache; None where the engine does not report them."""
        ...

    def close(self) -> None: ...

"""What every face holds: one interface to an engine, wherever that runs."""

from collections.abc import Iterator
from typing import Protocol

from localrun.base.events import CacheView, Event, ModelInfo
from localrun.base.request import Request


class EngineClient(Protocol):
    """One loaded model.

    Constructors block until it is loaded; what their `progress(done_bytes, total_bytes)` raises gives the load up.
    """

    @property
    def info(self) -> ModelInfo: ...

    def stream(self, request: Request) -> Iterator[Event]:
        """Generate; the last event is Done. Blocks between events, so faces call it on a thread of their own.

        Raises LocalrunError; EngineDiedError after the tokens that still arrived, and the next call starts anew.
        """
        ...

    def cancel(self) -> None:
        """End the answer under way, from any thread; what was generated so far is kept."""
        ...

    def view(self) -> CacheView | None:
        """What the KV cache holds; None where the engine does not tell."""
        ...

    def close(self) -> None: ...

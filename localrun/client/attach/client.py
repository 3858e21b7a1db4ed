"""A client of the shared engine of a running localrun, and of an engine of its own once that is gone."""

import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from localrun.base.errors import EngineError, UsageError
from localrun.base.events import Event, ModelInfo
from localrun.base.request import LoadOptions, ProgressCallback, Request
from localrun.base.views import CacheView, PromptView
from localrun.client.attach.channel import AttachedEngine, OwnerGoneError
from localrun.client.attach.owner import running_server
from localrun.client.interface import Cancellation, EngineClient, Generation
from localrun.client.measure import Explainer
from localrun.client.replay import Replay
from localrun.engine.sampler import MAX_SEED

if TYPE_CHECKING:
    from localrun.diagnose.explain.topic_report import TopicReport

OpenOwn = Callable[[ProgressCallback], EngineClient]
Tell = Callable[[str], None]  # a line for the user


def attach(
    options: LoadOptions, program: str, open_own: OpenOwn, progress: ProgressCallback, tell: Tell
) -> "AttachedClient | None":
    """A client of the engine of the running server, if it is the one that `options` would load; else None, and `tell`
    gets the reason. `tell` is not called where no running server shares its engine."""
    owner = running_server()
    if owner is None or not owner.engine:
        return None
    try:
        engine = AttachedEngine(owner, options, program)
    except EngineError as error:
        tell(f"{error.message}: the model is loaded here")
        return None
    return AttachedClient(engine, open_own, progress, tell)


class AttachedClient:
    """A shared engine, until its owner ends, loads another model, or unloads this one.

    Then the model is loaded here by the next request, and one under way is asked again: with the seed it had, so that
    it goes on where it was.
    """

    def __init__(self, engine: AttachedEngine, open_own: OpenOwn, progress: ProgressCallback, tell: Tell) -> None:
        self._shared, self._open_own, self._progress, self._tell = engine, open_own, progress, tell
        self._lock = threading.Lock()  # held while the model is loaded here
        self._is_closed = False
        self.own: EngineClient | None = None  # once the shared one is gone

    @property
    def info(self) -> ModelInfo:
        return self._engine.info

    @property
    def _engine(self) -> "AttachedEngine | EngineClient":
        return self.own or self._shared

    def generate(self, request: Request) -> Generation:
        """Answer a request. One that is cancelled while the model is loaded here ends after the load."""
        cancellation = Cancellation()
        return Generation(self._events(request, cancellation), cancellation.cancel, cancellation.raise_priority)

    def preview(self, request: Request, pieces: bool = False) -> PromptView | None:
        """How a request would be tokenized and cached; None while there is no engine."""
        return self._engine.preview(request, pieces)

    def view(self) -> CacheView | None:
        """Contents of the KV cache, of all programs that share it; None while there is no engine."""
        return self._engine.view()

    def explain(self, topic: str, watch: Callable[[int], None]) -> "TopicReport":
        """Measure a topic. Raises LocalrunError."""
        engine = self._engine
        if not isinstance(engine, Explainer):
            raise UsageError("this engine measures nothing")
        return engine.explain(topic, watch)

    def close(self) -> None:
        """Leave the shared engine, or close the own one."""
        self._is_closed = True
        self._shared.close()
        if self.own is not None:
            self.own.close()

    def _events(self, request: Request, cancellation: Cancellation) -> Iterator[Event]:
        if request.sampling.seed is None:
            request = replace(request, sampling=replace(request.sampling, seed=secrets.randbelow(MAX_SEED)))
        replay = Replay()
        if self.own is None and self._shared.is_shared:
            try:
                yield from replay.record(cancellation.watch(self._shared.generate(request)))
                return
            except OwnerGoneError:
                if cancellation.is_cancelled:
                    yield replay.cancelled_at_once(self.info)
                    return
        yield from replay.rest(cancellation.watch(self._own_engine().generate(request)))

    def _own_engine(self) -> EngineClient:
        """The engine of this process, loaded on demand."""
        with self._lock:
            self._check_open()
            if self.own is None:
                self._tell(f"{self._shared.why_gone()}: the model is loaded here")
                self._shared.close()
                own = self._open_own(self._watch)
                if self._is_closed:
                    own.close()
                self._check_open()
                self.own = own
            return self.own

    def _watch(self, done: int, total: int) -> None:
        """Progress of a load here; raises once the client is closed."""
        self._check_open()
        self._progress(done, total)

    def _check_open(self) -> None:
        if self._is_closed:
            raise EngineError("the model is closed", "load it again")

"""The engine of a server as other localruns of this user share it with clients over HTTP."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from localrun.base.errors import EngineError, LocalrunError, UsageError
from localrun.base.events import Done, Event, ModelInfo
from localrun.base.request import Request
from localrun.base.views import CacheView, PromptView
from localrun.client.attach.host import AttachedProgram, AttachHost
from localrun.client.attach.same_load import LoadedEngine, difference
from localrun.client.interface import Cancellation, EngineClient, Generation
from localrun.client.measure import Explainer
from localrun.client.rpc.answer import empty_completion
from localrun.client.rpc.wire import Attach
from localrun.server.monitor.live import LiveRequest
from localrun.server.refusal import Refusal
from localrun.server.service import Service

if TYPE_CHECKING:
    from localrun.diagnose.explain.topic_report import TopicReport

PROTOCOL = "attached"  # in place of a path


@contextmanager
def sharing(service: Service) -> Iterator[str]:
    """While open, other programs of this user may use the engine; gives the path of the socket, empty where none is
    possible. On the event loop."""
    loop = asyncio.get_running_loop()

    def admit(hello: Attach, program: AttachedProgram) -> EngineClient:
        client = service.models.slot.client
        if client is None:
            raise UsageError("the running localrun has no model loaded")
        if not isinstance(client, LoadedEngine):
            raise UsageError("the running localrun has no engine of its own")
        if what := difference(hello.options, client):
            raise UsageError(f"the running localrun has {what}")
        return SharedEngine(service, client, program, loop)

    try:
        host = AttachHost(admit)
    except OSError:
        yield ""
        return
    models, slot = service.models, service.models.slot
    slot.on_freed = lambda what: host.end_all(f"the running localrun {what}")
    models.n_attached = lambda: len(host.programs)
    service.attached = host
    try:
        yield str(host.path)
    finally:
        slot.on_freed = lambda what: None
        service.attached = None
        host.close("the running localrun has ended")


class SharedEngine:
    """The engine of one attached program, called on any thread. Its answers are counted, shown and cancelled like those
    over HTTP, and keep the model loaded."""

    def __init__(
        self, service: Service, client: EngineClient, program: AttachedProgram, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._service, self._client, self._program, self._loop = service, client, program, loop

    @property
    def info(self) -> ModelInfo:
        return self._client.info

    def generate(self, request: Request) -> Generation:
        turn = _Turn(self._loop)
        return Generation(self._events(request, turn), turn.cancel, turn.raise_priority)

    def preview(self, request: Request, pieces: bool = False) -> PromptView | None:
        return self._client.preview(request, pieces)

    def view(self) -> CacheView | None:
        return self._client.view()

    def explain(self, topic: str, watch: Callable[[int], None]) -> "TopicReport":
        if not isinstance(self._client, Explainer):
            raise UsageError("this engine measures nothing")
        turn = _Turn(self._loop)
        live = self._live(None)
        live.cancel = turn.cancel
        with turn.taken(self._hold(live, turn)) as is_taken:
            if not is_taken:
                raise EngineError("the measurement was cancelled")
            return self._client.explain(topic, watch)

    def close(self) -> None:
        """Do nothing: the engine is the server's."""

    def _events(self, request: Request, turn: "_Turn") -> Iterator[Event]:
        live = self._live(request.max_tokens)
        live.cancel, live.raise_priority = turn.cancel, turn.raise_priority
        with turn.taken(self._hold(live, turn)) as is_taken:
            if not is_taken:
                yield Done(empty_completion(self.info))
                return
            for event in turn.watch(self._client.generate(request)):
                live.take(event)
                if isinstance(event, Done):
                    live.end("done")
                yield event

    def _live(self, max_tokens: int | None) -> LiveRequest:
        return LiveRequest(PROTOCOL, str(self._program), self.info.name, "", max_tokens=max_tokens)

    async def _hold(self, live: LiveRequest, turn: "_Turn") -> None:
        """Keep the model loaded and the request listed until its turn is over."""
        with self._service.registry.holding(live):
            try:
                async with self._service.models.use("") as client:
                    if client is not self._client:
                        raise EngineError("the running localrun has loaded another model", "send the message again")
                    live.got_model(client.info.name)
                    await turn.run()
            except asyncio.CancelledError:  # while it waited
                live.end("cancelled")
                raise


class _Turn(Cancellation):
    """The time during which a request holds the model. Used from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._begun: Future[bool] = Future()
        self._over = asyncio.Event()
        self._holding: Future[None] | None = None

    def cancel(self) -> None:
        super().cancel()
        if self._holding is not None and not self._begun.done():
            self._holding.cancel()

    @contextmanager
    def taken(self, hold: Coroutine[Any, Any, None]) -> Iterator[bool]:
        """Wait for the turn; False where it was cancelled first. Raises LocalrunError where the load fails."""
        self._holding = asyncio.run_coroutine_threadsafe(self._reporting(hold), self._loop)
        if self.is_cancelled:  # before there was anything to cancel
            self.cancel()
        try:
            yield self._begun.result()
        finally:
            self._loop.call_soon_threadsafe(self._over.set)

    async def run(self) -> None:
        """The turn has come; until it is over. On the event loop."""
        self._begun.set_result(True)
        await self._over.wait()

    async def _reporting(self, hold: Coroutine[Any, Any, None]) -> None:
        """Report to the waiting program how the wait ended."""
        try:
            await hold
        except (LocalrunError, Refusal) as error:
            failure = error if isinstance(error, LocalrunError) else EngineError(error.message)
            if not self._begun.done():
                self._begun.set_exception(failure)
        finally:
            if not self._begun.done():
                self._begun.set_result(False)

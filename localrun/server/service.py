"""What all protocols share: the model, the queue, the requests under way."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from localrun.base.request import Request
from localrun.client.interface import EngineClient
from localrun.server.cache_break import LastRequests
from localrun.server.inference import InferenceRequest
from localrun.server.live import LiveRequest, Registry
from localrun.server.metrics import Metrics
from localrun.server.models import ModelHost
from localrun.server.options import ServerOptions
from localrun.server.refusal import busy
from localrun.server.wire import Wire

MAX_WAITING = 64  # requests beyond those that are computed at once
USUAL_PARALLEL = 16


class Service:
    """One server, whatever protocol it is spoken to in."""

    def __init__(
        self, models: ModelHost, options: ServerOptions, log: Callable[[LiveRequest], None] = lambda live: None
    ) -> None:
        """`log` hears of every request that is over."""
        self.models, self.options, self._log = models, options, log
        self.registry, self.metrics = Registry(self._ended), Metrics()
        self.last_requests = LastRequests()
        self._n_open = 0

    @asynccontextmanager
    async def engine(
        self, asked: InferenceRequest, live: LiveRequest, wire: Wire
    ) -> AsyncIterator[tuple[EngineClient, list[Request]]]:
        """The engine for a request, and what it is asked for each answer. Raises Refusal where too many wait."""
        if self._n_open + asked.n_answers > (self.options.parallel or USUAL_PARALLEL) + MAX_WAITING:
            raise busy(MAX_WAITING)
        self._n_open += asked.n_answers
        try:
            async with AsyncExitStack() as held:
                lease = self.models.use(asked.model, asked.keep_alive)
                client = await wire.wait(held.enter_async_context(lease))
                live.got_model(client.info.name)
                yield client, [_numbered(one, index) for one in asked.requests for index in range(asked.n)]
        finally:
            self._n_open -= asked.n_answers

    def _ended(self, live: LiveRequest) -> None:
        self.metrics.count(live)
        self._log(live)


def _numbered(request: Request, index: int) -> Request:
    """The request of one of several answers: each has a seed of its own."""
    seed = request.sampling.seed
    if not index or seed is None:
        return request
    return replace(request, sampling=replace(request.sampling, seed=seed + index))

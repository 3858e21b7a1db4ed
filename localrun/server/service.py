"""Common parts of all protocols: the model, the queue, the requests under way."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from localrun.base.errors import PromptTooLongError
from localrun.base.request import Request
from localrun.client.attach.host import AttachedProgram, AttachHost
from localrun.client.interface import EngineClient
from localrun.server.answer_memory import AnswerMemory
from localrun.server.cache_break import LastRequests
from localrun.server.inference import InferenceRequest
from localrun.server.models import ModelHost
from localrun.server.monitor.live import LiveRequest, Registry
from localrun.server.monitor.metrics import Metrics
from localrun.server.openai.fields import N_SEEDS
from localrun.server.options import ServerOptions
from localrun.server.refusal import Refusal, busy
from localrun.server.request.headers import program_name
from localrun.server.wire import Wire
from localrun.storage.programs import note_program

MAX_WAITING = 64  # requests beyond those that are computed at once
MAX_HELD = 256  # streams that are held open until there is room for them
USUAL_PARALLEL = 16
MAX_NOTED = 1000  # conversations that are known to have a record on disk


class Service:
    """One server, for all protocols."""

    def __init__(
        self, models: ModelHost, options: ServerOptions, log: Callable[[LiveRequest], None] = lambda live: None
    ) -> None:
        """`log` is called with every request that is over."""
        self.models, self.options, self._log = models, options, log
        self.registry, self.metrics = Registry(self._ended), Metrics()
        self.last_requests = LastRequests()
        self.answers = AnswerMemory()
        self.attached: AttachHost | None = None  # where other localruns of this user connect
        self._n_open = self._n_held = 0
        self._freed = asyncio.Condition()
        self._noted: set[str] = set()  # chats whose program is on disk

    @property
    def programs(self) -> list[AttachedProgram]:
        """Attached programs that use the engine now."""
        return [] if self.attached is None else self.attached.programs

    @asynccontextmanager
    async def engine(
        self, asked: InferenceRequest, live: LiveRequest, wire: Wire
    ) -> AsyncIterator[tuple[EngineClient, list[Request]]]:
        """Give the engine for a request, and one request for each answer. Raises Refusal where too many wait."""
        await self._take_room(asked, wire)
        try:
            async with AsyncExitStack() as held:
                lease = self.models.use(asked.model, asked.keep_alive)
                client = await wire.wait(held.enter_async_context(lease))
                live.got_model(client.info.name)
                for first in asked.requests[:1]:
                    await self._note_program(first.chat_id, live.client)
                requests = [_in_time(one, live.load_ms / 1000) for one in asked.requests]
                yield client, [_numbered(one, index) for one in requests for index in range(asked.n)]
        finally:
            self._n_open -= asked.n_answers
            async with self._freed:
                self._freed.notify_all()

    def count(self, client: EngineClient, request: Request) -> tuple[int, int]:
        """Token count of a prompt, and of its cached part. Blocks. Raises LocalrunError for a bad request, and Refusal
        where the engine cannot count."""
        try:
            view = client.preview(self.answers.recall(client.info, request))
        except PromptTooLongError as error:
            if error.n_tokens:
                return error.n_tokens, 0
            raise
        if view is None:
            raise Refusal(501, "this engine does not count tokens ahead", "not_supported")
        return view.n_tokens, min(view.n_cached or 0, view.n_tokens - 1)  # the last one is always computed

    async def _take_room(self, asked: InferenceRequest, wire: Wire) -> None:
        """Count a request among the open ones. One that is held goes before later ones."""

        async def wait() -> None:
            async with self._freed:
                await self._freed.wait_for(lambda: self._has_room(asked))
                self._n_open += asked.n_answers

        if not self._n_held and self._has_room(asked):
            self._n_open += asked.n_answers
        elif not asked.is_held or self._n_held >= MAX_HELD:
            raise busy(MAX_WAITING)
        else:
            self._n_held += 1
            try:
                await wire.wait(wait())
            finally:
                self._n_held -= 1

    def _has_room(self, asked: InferenceRequest) -> bool:
        return self._n_open + asked.n_answers <= (self.options.parallel or USUAL_PARALLEL) + MAX_WAITING

    async def _note_program(self, chat_id: str, client: str) -> None:
        """Record the client of a conversation for `localrun cache list`."""
        if chat_id and not self.options.no_disk and chat_id not in self._noted:
            self._noted = {chat_id, *(self._noted if len(self._noted) < MAX_NOTED else ())}
            await asyncio.to_thread(note_program, chat_id, program_name(client))

    def _ended(self, live: LiveRequest) -> None:
        self.metrics.count(live)
        self._log(live)


def _in_time(request: Request, waited: float) -> Request:
    """The request with the seconds that are left to it after the wait for the model."""
    return request if request.deadline is None else replace(request, deadline=max(0.0, request.deadline - waited))


def _numbered(request: Request, index: int) -> Request:
    """The request of one of several answers: each has a seed of its own."""
    seed = request.sampling.seed
    if not index or seed is None:
        return request
    return replace(request, sampling=replace(request.sampling, seed=(seed + index) % N_SEEDS))

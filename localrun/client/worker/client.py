"""An engine in a process of its own, whose failure does not end this one."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from localrun.base.errors import DeviceLostError, EngineDiedError, EngineError, NotFoundError
from localrun.base.events import Done, Event, ModelInfo
from localrun.base.request import LoadOptions, ProgressCallback, Request
from localrun.base.views import CacheView, PromptView
from localrun.client.attach.same_load import Versions, versions_of
from localrun.client.interface import Generation
from localrun.client.rpc.answer import ChannelAnswer, empty_completion
from localrun.client.rpc.channel import Inbox
from localrun.client.rpc.wire import Failure, Load, Loaded, Progress, as_error
from localrun.client.worker.process import WorkerProcess
from localrun.hub.disk.gone import model_is_gone

if TYPE_CHECKING:
    from localrun.diagnose.explain.topic_report import TopicReport

_CLOSED = "the model was closed while it was loading"
MOST_LOSSES = 1  # of a GPU that `auto` took: it is tried again
REPLACED = "the model's file was replaced since it was loaded, and what it holds now answers"
WITHOUT_GPU = "slow: the GPU failed twice, so the processor computes until the model is loaded anew"


class WorkerClient:
    """One loaded model in a supervised child process; this process never imports torch.

    `progress` gets bytes loaded and bytes in all, at least four times a second; what it raises gives the load up. A
    worker that died is started again, and the model loaded again, by the next `generate`; on the processor where `auto`
    took a GPU that has failed twice.
    """

    def __init__(
        self,
        options: LoadOptions,
        progress: ProgressCallback = lambda done, total: None,
        module: str = "localrun.client.worker.main",
    ) -> None:
        self.options, self._progress, self._module = options, progress, module
        self.files: Versions = {}  # of the loaded model
        self._lock = threading.Lock()  # held while starting and loading
        self._worker: WorkerProcess | None = None
        self._loading: Inbox | None = None
        self._loaded_bytes = (0, 0)
        self._info: ModelInfo | None = None
        self._is_closed = False
        self._note = ""  # goes with the next answer
        self._n_lost = 0  # times that the GPU has failed
        try:
            self._ready_worker()
        except BaseException:
            self.close()
            raise

    @property
    def info(self) -> ModelInfo:
        assert self._info is not None
        return self._info

    def generate(self, request: Request) -> Generation:
        """Answer a request, from the first event on. One that is cancelled while the model is loaded again for it lets
        the model go on loading."""
        answer = ChannelAnswer()
        return Generation(self._events(answer, request), answer.cancel, answer.raise_priority)

    def _events(self, answer: ChannelAnswer, request: Request) -> Iterator[Event]:
        try:
            if not self._begin(answer, request):
                yield Done(empty_completion(self.info))
                return
            for event in answer.events():
                yield self._with_note(event) if isinstance(event, Done) else event
        except DeviceLostError:
            self._n_lost += 1
            raise
        finally:
            answer.leave()

    def _with_note(self, done: Done) -> Done:
        """Say with the first answer after it that another model was loaded in the place of the one that was chosen."""
        note, self._note = self._note, ""
        if not note:
            return done
        found = done.completion
        cache = replace(found.cache, cache_note="; ".join(filter(None, (note, found.cache.cache_note))))
        return replace(done, completion=replace(found, notes=(*found.notes, note), cache=cache))

    def view(self) -> CacheView | None:
        """Contents of the KV cache; None while there is no engine."""
        worker = self._ready()
        return worker.view() if worker is not None else None

    def preview(self, request: Request, pieces: bool = False) -> PromptView | None:
        """How a request would be tokenized and cached; None while there is no engine."""
        worker = self._ready()
        return worker.preview(request, pieces) if worker is not None else None

    def explain(self, topic: str, watch: Callable[[int], None]) -> "TopicReport":
        """Measure a topic in the worker. `watch` gets the number of steps so far, at least four times a
        second; an exception from it cancels. Raises LocalrunError."""
        worker = self._ready()
        if worker is None:
            raise EngineError("the model is not ready", "wait until it is loaded")
        return worker.explain(topic, watch)

    @property
    def _without_gpu(self) -> bool:
        return self.options.backend == "auto" and self._n_lost > MOST_LOSSES

    def _ready(self) -> WorkerProcess | None:
        """The worker, while it runs and holds the model."""
        worker = self._worker
        return worker if worker is not None and self._loading is None and worker.can_answer else None

    def held_bytes(self) -> int:
        """Main memory that closing it frees: weights, cache, buffers and the process."""
        worker = self._worker
        return worker.held_bytes() if worker is not None else 0

    def close(self) -> None:
        """End the process, and with it a load or an answer under way."""
        self._is_closed = True
        worker = self._worker
        if worker is None:
            return
        if self._loading is not None:
            worker.kill(_CLOSED)
        worker.close()

    def __enter__(self) -> "WorkerClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, answer: ChannelAnswer, request: Request) -> bool:
        """Send the request to a worker; False when it was cancelled before.

        One that dies before it has taken it died of something else, so then there is a second try.
        """
        for is_last in (False, True):
            worker = self._ready_worker(answer)
            if worker is None:
                return False
            try:
                answer.begin(worker, request)
                return True
            except EngineDiedError:
                if is_last:
                    raise
        raise AssertionError("the second try returns or raises")

    def _ready_worker(self, answer: ChannelAnswer | None = None) -> WorkerProcess | None:
        """A worker that holds the model, started if need be; None when `answer` was cancelled while it started."""
        with self._lock:
            if self._worker is None or not self._worker.can_answer:
                self._start()
            worker = self._worker
            assert worker is not None
            try:
                while self._loading is not None:
                    self._load_on(worker, self._loading, answer)
            except _LoadGoesOnError:
                return None
            except BaseException:
                self._loading = None
                worker.close(0)
                raise
            return worker

    def _start(self) -> None:
        if self._worker is not None:
            self._worker.close(0)
        if self._is_closed:
            raise EngineError("the model is closed", "load it again")
        before, self.files = self.files, versions_of(self.options)
        self._note = REPLACED if before and before != self.files else self._note
        self._worker = WorkerProcess(self._module)
        options = replace(self.options, backend="cpu") if self._without_gpu else self.options
        self._loading, self._loaded_bytes = self._worker.call(Load(options)), (0, 0)
        if self._is_closed:  # since a moment ago
            self._worker.kill(_CLOSED)

    def _load_on(self, worker: WorkerProcess, loading: Inbox, answer: ChannelAnswer | None) -> None:
        """Take one step of loading."""

        def on_tick() -> None:
            if answer is not None and answer.is_cancelled:
                raise _LoadGoesOnError
            self._progress(*self._loaded_bytes)

        on_tick()
        match worker.receive(loading, on_tick):
            case Progress(done, total):
                self._loaded_bytes = (done, total)
            case Loaded(info):
                worker.drop(loading)
                notes = (*info.notes, WITHOUT_GPU) if self._without_gpu else info.notes
                self._info, self._loading = replace(info, notes=notes), None
            case Failure() as failure:
                error = as_error(failure)
                if self._info is not None and isinstance(error, NotFoundError):  # it was there
                    raise model_is_gone(self.info.name, self.options.path)
                raise error


class _LoadGoesOnError(Exception):
    """The caller stopped waiting for the load, which goes on."""

"""One answer of a worker, as the client that asked for it holds it."""

from localrun.base.events import Completion, ModelInfo, Timings
from localrun.base.request import Request
from localrun.client.process import TICK_SECONDS, Inbox, WorkerProcess
from localrun.client.wire import Failure, Generate, ReplyContent, as_error

CANCEL_SECONDS = 20.0  # for the engine to end an answer; then it is ended itself


class WorkerAnswer:
    """One generation, as `cancel` of another thread sees it."""

    def __init__(self) -> None:
        self.is_cancelled = self.is_over = False
        self._call: tuple[WorkerProcess, Inbox] | None = None
        self._waited = 0.0

    def begin(self, worker: WorkerProcess, request: Request) -> None:
        """Wait until the worker has the request."""
        self._call = worker, worker.call(Generate(request))
        if self.is_cancelled:
            self.cancel()
        first = self.receive()
        if isinstance(first, Failure):
            self.is_over = True
            raise as_error(first)

    def cancel(self) -> None:
        self.is_cancelled = True
        if self._call is not None and not self.is_over:
            worker, inbox = self._call
            worker.cancel(inbox)

    def receive(self) -> ReplyContent:
        assert self._call is not None
        worker, inbox = self._call

        def on_tick() -> None:
            self._waited += TICK_SECONDS if self.is_cancelled else 0.0
            if self._waited > CANCEL_SECONDS:
                worker.kill("the engine did not stop when it was asked to, and was ended")

        return worker.receive(inbox, on_tick)

    def leave(self) -> None:
        """Cancel what is not over, and listen no longer."""
        if self._call is not None:
            self.cancel()
            self.is_over = True
            worker, inbox = self._call
            worker.drop(inbox)


def empty_completion(info: ModelInfo) -> Completion:
    """The completion of an answer that was cancelled before the engine received it."""
    return Completion(
        model=info.name,
        precision=info.precision,
        backend=info.backend,
        text="",
        thinking="",
        stop_reason="cancelled",
        prompt_tokens=None,
        cached_tokens=None,
        completion_tokens=0,
        token_ids=(),
        kv_codec=info.kv_codec,
        ctx=info.ctx,
        seed=0,
        path=info.path,
        notes=info.notes,
        timings=Timings(load_ms=info.load_ms),
    )

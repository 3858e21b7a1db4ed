"""One answer of an engine in another process, on the side of the client."""

from collections.abc import Iterator

from localrun.base.events import Completion, Done, Event, ModelInfo, Timings
from localrun.base.request import Request
from localrun.client.rpc.channel import TICK_SECONDS, EngineChannel, Inbox
from localrun.client.rpc.wire import Cancel, Events, Failure, Generate, RaisePriority, ReplyContent, as_error

CANCEL_SECONDS = 20.0  # for the engine to end an answer; then the process is ended


class ChannelAnswer:
    """One generation, as `cancel` of another thread sees it."""

    def __init__(self) -> None:
        self.is_cancelled = self.is_over = self.is_raised = False
        self._call: tuple[EngineChannel, Inbox] | None = None
        self._waited = 0.0

    def begin(self, channel: EngineChannel, request: Request) -> None:
        """Wait until the engine has the request."""
        self._call = channel, channel.call(Generate(request))
        if self.is_cancelled:
            self.cancel()
        if self.is_raised:
            self.raise_priority()
        first = self._receive()
        if isinstance(first, Failure):
            self.is_over = True
            raise as_error(first)

    def cancel(self) -> None:
        self.is_cancelled = True
        self._tell(Cancel())

    def raise_priority(self) -> None:
        self.is_raised = True
        self._tell(RaisePriority())

    def _tell(self, about: Cancel | RaisePriority) -> None:
        """Tell the engine, once it has the request and until it has ended."""
        if self._call is not None and not self.is_over:
            channel, inbox = self._call
            channel.tell(inbox, about)

    def events(self) -> Iterator[Event]:
        """Events up to Done. Raises LocalrunError."""
        while not self.is_over:
            match self._receive():
                case Events(events):
                    for event in events:
                        self.is_over = isinstance(event, Done)
                        yield event
                case Failure() as failure:
                    self.is_over = True
                    raise as_error(failure)

    def leave(self) -> None:
        """Cancel, unless it is over, and drop further events."""
        if self._call is not None:
            self.cancel()
            self.is_over = True
            channel, inbox = self._call
            channel.drop(inbox)

    def _receive(self) -> ReplyContent:
        assert self._call is not None
        channel, inbox = self._call

        def on_tick() -> None:
            self._waited += TICK_SECONDS if self.is_cancelled else 0.0
            if self._waited > CANCEL_SECONDS:
                channel.kill("the engine did not stop when it was asked to, and was ended")

        return channel.receive(inbox, on_tick)


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
        engine=info.engine,
        timings=Timings(load_ms=info.load_ms),
    )

"""Connection to an engine that another localrun of this user shares."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import localrun
from localrun.base.errors import EngineDiedError, EngineError
from localrun.base.events import Done, Event, ModelInfo
from localrun.base.request import LoadOptions, Request
from localrun.base.views import CacheView, PromptView
from localrun.client.attach import private_socket
from localrun.client.attach.owner import Owner
from localrun.client.interface import Generation
from localrun.client.rpc.answer import ChannelAnswer
from localrun.client.rpc.channel import TICK_SECONDS, EngineChannel
from localrun.client.rpc.codec import WireError
from localrun.client.rpc.wire import Attach, Ended, Failure, Loaded, Reply

if TYPE_CHECKING:
    from localrun.diagnose.explain.topic_report import TopicReport

HELLO_SECONDS = 5.0  # for the owner to answer


class OwnerGoneError(EngineDiedError):
    """The owner no longer shares the engine."""


class SocketChannel(EngineChannel):
    """A connection to the process of the engine."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._pid = private_socket.peer_of(connection).pid
        self._reason = ""  # for its end
        threading.Thread(target=self._write, args=(connection.makefile("wb"),), daemon=True).start()
        self._life = threading.Thread(target=self._live, name="localrun-attached", daemon=True)
        self._life.start()

    @property
    def pid(self) -> int | None:
        return self._pid

    def kill(self, reason: str) -> None:
        self._reason = self._reason or reason
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def why_gone(self) -> str:
        """Reason for its end, in words."""
        return self._reason or "the localrun whose engine this used is gone"

    def _hear(self, reply: Reply) -> None:
        super()._hear(reply)
        if isinstance(reply.answer, Ended):
            self._reason = reply.answer.reason

    def _live(self) -> None:
        with suppress(OSError, WireError), self._connection.makefile("rb") as stream:
            self._read(stream)
        if not self._n_heard:
            self._reason = self._reason or "the running localrun is of another version"
        self._outbox.put(None)
        self._connection.close()
        self._bury(OwnerGoneError(self.why_gone(), "send the message again: the model is loaded for it"))


class AttachedEngine:
    """The engine of a running localrun, for as long as that shares it; then an answer raises OwnerGoneError.

    `options` say what would be loaded otherwise, `program` who asks, such as `localrun run`. Raises EngineError with
    what is in the way.
    """

    def __init__(self, owner: Owner, options: LoadOptions, program: str) -> None:
        began = time.perf_counter()
        try:
            self._channel = SocketChannel(private_socket.connect(Path(owner.engine)))
        except OSError:
            raise EngineError("the running localrun does not share its engine") from None
        try:
            info = self._greet(Attach(options, localrun.__version__, program))
        except BaseException:
            self.close()
            raise
        self._options = options
        ms = 1000 * (time.perf_counter() - began)
        self.info: ModelInfo = replace(info, ctx=min(info.ctx, options.ctx or info.ctx), load_ms=ms, engine="attached")

    @property
    def is_shared(self) -> bool:
        """Whether the connection is open."""
        return self._channel.can_answer

    def why_gone(self) -> str:
        """Reason for its end, in words."""
        return self._channel.why_gone()

    def generate(self, request: Request) -> Generation:
        answer = ChannelAnswer()
        return Generation(self._events(answer, request), answer.cancel, answer.raise_priority)

    def view(self) -> CacheView | None:
        return self._channel.view() if self.is_shared else None

    def preview(self, request: Request, pieces: bool = False) -> PromptView | None:
        return self._channel.preview(self._limited(request), pieces) if self.is_shared else None

    def explain(self, topic: str, watch: Callable[[int], None]) -> "TopicReport":
        """Measure a topic on the shared engine, beside other answers. Raises LocalrunError."""
        return self._channel.explain(topic, watch)

    def close(self) -> None:
        """Disconnect; the owner cancels our calls."""
        self._channel.kill("the model was closed")

    def _greet(self, hello: Attach) -> ModelInfo:
        """Description of what its engine has loaded. Raises EngineError."""
        waited = 0.0

        def on_tick() -> None:
            nonlocal waited
            waited += TICK_SECONDS
            if waited > HELLO_SECONDS:
                self._channel.kill("the running localrun does not answer")

        inbox = self._channel.call(hello)
        try:
            answer = self._channel.receive(inbox, on_tick)
        finally:
            self._channel.drop(inbox)
        if isinstance(answer, Failure):
            raise EngineError(answer.message)
        if not isinstance(answer, Loaded):
            raise EngineError("the running localrun is of another version")
        return answer.info

    def _events(self, answer: ChannelAnswer, request: Request) -> Iterator[Event]:
        try:
            answer.begin(self._channel, self._limited(request))
            for event in answer.events():
                yield self._as_own(event) if isinstance(event, Done) else event
        finally:
            answer.leave()

    def _limited(self, request: Request) -> Request:
        """The request within our own load options: no larger context, and nothing kept on disk against them."""
        ctx = min(self.info.ctx, request.ctx or self.info.ctx)
        return replace(request, ctx=ctx, chat_id=request.chat_id if self._options.disk_cache else "")

    def _as_own(self, done: Done) -> Done:
        figures = done.completion
        timings = replace(figures.timings, load_ms=self.info.load_ms)
        return replace(done, completion=replace(figures, ctx=self.info.ctx, engine="attached", timings=timings))

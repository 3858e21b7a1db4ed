"""Calls to an engine in another process, with an inbox for the answers to each."""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from typing import IO, TYPE_CHECKING, BinaryIO

from localrun.base.dataclass import dataclass
from localrun.base.errors import EngineDiedError, EngineError, UsageError
from localrun.base.request import Request
from localrun.base.views import CacheView, PromptView
from localrun.client.rpc.codec import WireError
from localrun.client.rpc.wire import (
    Alive,
    Attach,
    Call,
    Cancel,
    CheckLoad,
    Ended,
    Explain,
    Explained,
    Failure,
    Generate,
    Load,
    Preview,
    Previewed,
    Progress,
    RaisePriority,
    Reply,
    ReplyContent,
    View,
    Viewed,
    as_error,
    pack,
    read_messages,
)
from localrun.client.worker import process_stats
from localrun.client.worker.watchdog import Watchdog

if TYPE_CHECKING:
    from localrun.diagnose.explain.topic_report import TopicReport

EngineCall = Load | CheckLoad | Attach | Generate | View | Preview | Explain

TICK_SECONDS = 0.25


@dataclass(eq=False, slots=True)
class Inbox:
    """Queue of the answers to one call; None marks the end."""

    number: int
    answers: "queue.SimpleQueue[ReplyContent | None]" = field(default_factory=queue.SimpleQueue)


class EngineChannel:
    """Base of channels of frames. Any thread may call; none waits for the stream, so a stopped peer blocks no caller.

    A subclass starts `_life`, the thread that reads replies until their end and then calls `_bury`.
    """

    _life: threading.Thread

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inboxes: dict[int, Inbox] = {}
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._n_calls = self._n_heard = 0
        self._death: EngineDiedError | None = None

    @property
    def pid(self) -> int | None:
        """The process at the other end; None where it is unknown or could not be started."""
        raise NotImplementedError

    @property
    def can_answer(self) -> bool:
        """Whether the process is there and not stopped."""
        return self._death is None and self._life.is_alive() and not process_stats.is_stopped(self.pid)

    def call(self, ask: EngineCall) -> Inbox:
        """Send a call. UsageError for what cannot be sent."""
        with self._lock:
            self._n_calls += 1
            inbox = Inbox(self._n_calls)
            try:
                frame = pack(Call(inbox.number, ask))
            except WireError as error:
                raise UsageError(f"the request cannot be sent to the engine: {error}") from None
            if self._death is None:
                self._inboxes[inbox.number] = inbox
            else:
                inbox.answers.put(None)
        self._outbox.put(frame)
        return inbox

    def tell(self, inbox: Inbox, about: Cancel | RaisePriority) -> None:
        """Tell the engine about a call that it has."""
        self._outbox.put(pack(Call(inbox.number, about)))

    def drop(self, inbox: Inbox) -> None:
        """Drop further answers to a call. Without a lock: the garbage collector ends answers, amid a call of any
        thread."""
        self._inboxes.pop(inbox.number, None)

    def receive(self, inbox: Inbox, on_tick: Callable[[], None] = lambda: None) -> ReplyContent:
        """The next answer. EngineDiedError once no more can come; `on_tick` is called while waiting."""
        watchdog = Watchdog(self.pid, self._n_heard)
        while True:
            with suppress(queue.Empty):
                answer = inbox.answers.get(timeout=TICK_SECONDS)
                if answer is None:
                    raise self._died()
                return answer
            on_tick()
            if not self._life.is_alive() and inbox.answers.empty():
                raise self._died()
            if reason := watchdog.waited(TICK_SECONDS, self._n_heard):
                self.kill(reason)

    def view(self) -> CacheView | None:
        """Contents of the KV cache; None where no more answers come."""
        answer = self._ask(View())
        return answer.view if isinstance(answer, Viewed) else None

    def preview(self, request: Request, pieces: bool) -> PromptView | None:
        """How a request would be tokenized and cached; None where no more answers come."""
        answer = self._ask(Preview(request, pieces))
        if isinstance(answer, Failure):
            raise as_error(answer)
        return answer.view if isinstance(answer, Previewed) else None

    def explain(self, topic: str, watch: Callable[[int], None]) -> "TopicReport":
        """Measure a topic. `watch` gets the number of steps so far, at least four times a second;
        an exception from it cancels. Raises LocalrunError."""
        from localrun.diagnose.explain.topic_report import as_report

        inbox, steps = self.call(Explain(topic)), [0]
        try:
            while True:
                match self.receive(inbox, lambda: watch(steps[-1])):
                    case Progress(done, _):
                        steps.append(done)
                        watch(done)
                    case Explained(report):
                        return as_report(report)
                    case Failure() as failure:
                        raise as_error(failure)
        except BaseException:
            self.tell(inbox, Cancel())
            raise
        finally:
            self.drop(inbox)

    def kill(self, reason: str) -> None:
        """End the channel, with a reason."""
        raise NotImplementedError

    def _ask(self, question: View | Preview) -> ReplyContent | None:
        """The answer to a call with a single one; None where the channel ends first."""
        inbox = self.call(question)
        try:
            return self.receive(inbox)
        except EngineError:
            return None
        finally:
            self.drop(inbox)

    def _read(self, stream: BinaryIO) -> None:
        """Read replies until their end. Raises WireError."""
        for reply in read_messages(stream, Reply):
            self._hear(reply)

    def _hear(self, reply: Reply) -> None:
        self._n_heard += 1
        inbox = self._inboxes.get(reply.number)
        if inbox is not None and not isinstance(reply.answer, Alive | Ended):
            inbox.answers.put(reply.answer)

    def _bury(self, reason: EngineDiedError) -> None:
        with self._lock:
            self._death = self._death or reason
            for inbox in tuple(self._inboxes.values()):  # which others may be dropped from
                inbox.answers.put(None)

    def _died(self) -> EngineDiedError:
        """A new error for every waiter: one that is raised twice collects the tracebacks of both."""
        if self._death is None:  # nor is it dead: only the thread that listens is not in this process
            return EngineDiedError("this process was forked while the engine worked for it", "send the message again")
        return type(self._death)(self._death.message, self._death.hint)

    def _write(self, stream: IO[bytes]) -> None:
        with suppress(OSError):
            while (frame := self._outbox.get()) is not None:
                stream.write(frame)
                stream.flush()
        with suppress(OSError):
            stream.close()

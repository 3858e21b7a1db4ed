"""Serve calls that arrive as frames, with an engine of this process or one that it uses."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import BinaryIO

from localrun.base.errors import DoesNotFitError, EngineError, LocalrunError, UsageError
from localrun.base.events import Prefill
from localrun.base.kept_threads import KeptThreads
from localrun.base.request import LoadOptions, Request
from localrun.client.interface import Cancellation, EngineClient
from localrun.client.measure import Explainer
from localrun.client.rpc.codec import WireError
from localrun.client.rpc.outbox import Outbox
from localrun.client.rpc.wire import (
    Alive,
    Attach,
    Begun,
    Call,
    Cancel,
    CheckLoad,
    Ended,
    Events,
    Explain,
    Explained,
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
    as_failure,
    is_words,
    read_messages,
)

ALIVE_SECONDS = 0.5  # between signs of life while at work; none while idle
THREADS = KeptThreads("localrun-call")


class CallServer:
    """One channel, with a thread for every call under way."""

    def __init__(self, replies: BinaryIO, client: EngineClient | None = None) -> None:
        self._client = client
        self._outbox = Outbox(replies, self._leave)
        self._jobs: dict[int, Cancellation] = {}
        self._is_working = threading.Event()
        self._is_over = False
        start_thread(self._show_life)

    def answer_all(self, calls: BinaryIO) -> None:
        """Take calls until the channel ends or a frame is invalid."""
        with suppress(WireError, OSError):
            for call in read_messages(calls, Call):
                self._take(call)

    def end(self) -> None:
        """Send pending events, cancel calls under way, and stop."""
        self._is_over = True
        self._outbox.close()
        for job in list(self._jobs.values()):
            job.cancel()
        self._is_working.set()

    def _take(self, call: Call) -> None:
        if isinstance(call.ask, Cancel | RaisePriority):
            if (job := self._jobs.get(call.number)) is not None:
                (job.cancel if isinstance(call.ask, Cancel) else job.raise_priority)()
            return
        self._jobs[call.number] = job = Cancellation()
        self._is_working.set()
        THREADS.run(partial(self._answer, call, job))

    def _answer(self, call: Call, job: Cancellation) -> None:
        try:
            match call.ask:
                case Load(options):
                    self._load(call.number, options)
                case CheckLoad(options, freed):
                    self._check(call.number, options, freed)
                case Attach():
                    raise UsageError("this channel has its engine already")
                case Generate(request):
                    self._generate(call.number, request, job)
                case View():
                    self._say(call.number, Viewed(self._loaded().view()))
                case Explain(topic):
                    self._explain(call.number, topic, job)
                case Preview(request, pieces):
                    self._say(call.number, Previewed(self._loaded().preview(request, pieces)))
        except LocalrunError as error:
            self._say(call.number, as_failure(error))
            self._has_failed(error)
        except Exception as error:  # a bug of ours must reach the face, not vanish with the thread
            self._say(call.number, as_failure(_unexpected(error)))
        finally:
            self._jobs.pop(call.number, None)

    def _load(self, number: int, options: LoadOptions) -> None:
        raise UsageError("this engine is loaded already")

    def _check(self, number: int, options: LoadOptions, freed: int) -> None:
        raise UsageError("this engine is loaded already")

    def _generate(self, number: int, request: Request, job: Cancellation) -> None:
        client = self._loaded()
        self._say(number, Begun())
        has_begun = False
        for event in job.watch(client.generate(request)):
            reply = Reply(number, Events((event,)))
            if isinstance(event, Prefill) or (has_begun and is_words(event)):
                self._outbox.put_words(reply, request.gather_ms / 1000)
            else:
                self._outbox.put(reply)
            has_begun = has_begun or is_words(event)

    def _explain(self, number: int, topic: str, job: Cancellation) -> None:
        client = self._loaded()
        if not isinstance(client, Explainer):
            raise UsageError("this engine measures nothing")

        def watch(steps: int) -> None:
            if job.is_cancelled:
                raise EngineError("the measurement was cancelled")
            self._say(number, Progress(steps, 0))

        self._say(number, Explained(asdict(client.explain(topic, watch))))

    def _loaded(self) -> EngineClient:
        if self._client is None:
            raise UsageError("no model is loaded")
        return self._client

    def _say(self, number: int, answer: ReplyContent | Alive | Ended) -> None:
        self._outbox.put(Reply(number, answer))

    def _show_life(self) -> None:
        while self._is_working.wait() and not self._is_over:
            self._say(0, Alive())
            time.sleep(ALIVE_SECONDS)
            self._is_working.clear()
            if self._jobs or self._is_over:  # looked at last: one that comes now sets it again
                self._is_working.set()

    def _has_failed(self, error: LocalrunError) -> None:
        """Hook for a call that was answered with an error."""

    def _leave(self) -> None:
        """Hook for the end of the channel."""


def start_thread(target: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, daemon=True).start()


def _unexpected(error: Exception) -> LocalrunError:
    """The error to send for one that is none of ours: memory that ran out, as Python or torch says it, or a bug."""
    torch_says = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    if isinstance(error, MemoryError) or torch_says:
        return DoesNotFitError("memory ran out", "try a smaller model or context, or close other programs")
    return EngineError(f"the engine failed: {type(error).__name__}: {error}", "please report this")

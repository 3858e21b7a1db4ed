"""The process an engine lives in so that a face outlives it. Calls come on stdin, replies go to stdout (wire.py).

It ends when stdin does, and with its parent. Whatever a library prints goes to stderr.
"""

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import BinaryIO

from localrun.base.errors import DoesNotFitError, EngineError, LocalrunError, UsageError
from localrun.base.request import LoadOptions, ProgressCallback, Request
from localrun.base.startup import look_less_often
from localrun.client.codec import WireError
from localrun.client.interface import EngineClient, Generation
from localrun.client.measure import Explainer
from localrun.client.wire import (
    Alive,
    Begun,
    Call,
    Cancel,
    Events,
    Explain,
    Explained,
    Generate,
    Load,
    Loaded,
    Preview,
    Previewed,
    Progress,
    Reply,
    ReplyContent,
    View,
    Viewed,
    as_failure,
    is_mid_answer,
    merged,
    pack,
    read_messages,
)

OpenEngine = Callable[[LoadOptions, ProgressCallback], EngineClient]

ALIVE_SECONDS = 0.5  # between signs of life while at work; none while idle
SOON_SECONDS = 0.03  # what is said in between travels together, before the first words: somebody waits for them
LEAVE_SECONDS = 3.0  # for an engine to close
OOM_SCORE = 500  # where memory runs out, this process goes before those that hold what a user typed
SWITCH_SECONDS = 0.0005  # that another thread of Python may go on while the engine's waits: a step asks several times
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve the engine of this process."""
    sys.setswitchinterval(SWITCH_SECONDS)
    look_less_often()
    serve(_open_local)


def _open_local(options: LoadOptions, progress: ProgressCallback) -> EngineClient:
    from localrun.client.local import LocalClient

    return LocalClient(options, progress)


def serve(open_client: OpenEngine) -> None:
    """Answer calls until stdin ends; does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls, replies = _take_streams()
    _die_first()
    Worker(open_client, replies).work(calls)


class Worker:
    """One model, and a thread for every call under way."""

    def __init__(self, open_client: OpenEngine, replies: BinaryIO) -> None:
        self._open_client = open_client
        self._client: EngineClient | None = None
        self._outbox: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self._jobs: dict[int, _Job] = {}
        self._is_working = threading.Event()
        self._has_come = threading.Event()  # a call that may be in more of a hurry than those before
        _start(self._send, replies)
        _start(self._show_life)

    def work(self, calls: BinaryIO) -> None:
        """Take calls until there are no more; ends the process."""
        with suppress(WireError, OSError):
            for call in read_messages(calls, Call):
                if isinstance(call.ask, Cancel):
                    if (job := self._jobs.get(call.number)) is not None:
                        job.cancel()
                else:
                    gather_ms = call.ask.request.gather_ms if isinstance(call.ask, Generate) else None
                    self._jobs[call.number] = job = _Job(gather_ms)
                    self._is_working.set()
                    self._has_come.set()
                    _start(self._answer, call, job)
        _start(_leave_after, LEAVE_SECONDS)
        if self._client is not None:
            self._client.close()
        os._exit(0)

    def _answer(self, call: Call, job: "_Job") -> None:
        try:
            match call.ask:
                case Load(options):
                    self._load(call.number, options)
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
        except Exception as error:  # a bug of ours must reach the face, not vanish with the thread
            self._say(call.number, as_failure(_unexpected(error)))
        finally:
            del self._jobs[call.number]

    def _load(self, number: int, options: LoadOptions) -> None:
        self._client = self._open_client(options, lambda done, total: self._say(number, Progress(done, total)))
        self._say(number, Loaded(self._client.info))

    def _generate(self, number: int, request: Request, job: "_Job") -> None:
        client = self._loaded()
        self._say(number, Begun())
        for event in job.begin(client.generate(request)):
            self._say(number, Events((event,)))

    def _explain(self, number: int, topic: str, job: "_Job") -> None:
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

    def _say(self, number: int, answer: ReplyContent | Alive) -> None:
        self._outbox.put(Reply(number, answer))

    def _show_life(self) -> None:
        while self._is_working.wait():
            self._say(0, Alive())
            time.sleep(ALIVE_SECONDS)
            self._is_working.clear()
            if self._jobs:  # looked at last: one that comes now sets it again
                self._is_working.set()

    def _send(self, replies: BinaryIO) -> None:
        while True:
            waiting = [self._outbox.get()]
            while not self._outbox.empty():
                waiting.append(self._outbox.get())
            data = b"".join(_packed(reply) for reply in merged(waiting))
            try:
                replies.write(data)
                replies.flush()
            except OSError:  # nobody listens any more
                os._exit(0)
            self._gather(is_mid_answer(waiting))

    def _gather(self, mid_answer: bool) -> None:
        """Wait for more to send: as long as the call does that is in the greatest hurry."""
        times = [job.gather_ms / 1000 for job in list(self._jobs.values()) if job.gather_ms is not None]
        least = min(times, default=SOON_SECONDS)
        if self._has_come.wait(least if mid_answer else min(least, SOON_SECONDS)):
            self._has_come.clear()


class _Job:
    """A call under way, as a Cancel of another thread sees it. `gather_ms`: how long its events may be held back."""

    def __init__(self, gather_ms: int | None = None) -> None:
        self.gather_ms = gather_ms
        self._generation: Generation | None = None
        self.is_cancelled = False

    def begin(self, generation: Generation) -> Generation:
        self._generation = generation
        if self.is_cancelled:  # before there was anything to cancel
            generation.cancel()
        return generation

    def cancel(self) -> None:
        self.is_cancelled = True
        if self._generation is not None:
            self._generation.cancel()


def _packed(reply: Reply) -> bytes:
    try:
        return pack(reply)
    except WireError as error:
        failed = EngineError(f"the engine's answer cannot be sent: {error}", "please report this")
        return pack(Reply(reply.number, as_failure(failed)))


def _unexpected(error: Exception) -> LocalrunError:
    """torch has several ways to say that memory ran out; the rest is a bug."""
    torch_says = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    if isinstance(error, MemoryError) or torch_says:
        return DoesNotFitError("memory ran out", "try a smaller model or context, or close other programs")
    return EngineError(f"the engine failed: {type(error).__name__}: {error}", "please report this")


def _start(target: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, daemon=True).start()


def _leave_after(seconds: float) -> None:
    time.sleep(seconds)
    os._exit(0)


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """stdin and stdout for us alone; in their place nothing to read, and stderr."""
    calls, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return calls, replies


def _die_first() -> None:
    """Linux: end with the parent even when stopped or stuck, and be the one to go when memory runs out."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(OOM_SCORE))


if __name__ == "__main__":
    main()

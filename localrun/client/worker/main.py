"""The worker process of an engine: calls come on stdin, replies go to stdout (wire.py).

It ends when stdin does, and with its parent; its failure ends no other process. Output of libraries goes to stderr.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Protocol

from localrun.base.errors import DeviceLostError, LocalrunError
from localrun.base.request import LoadOptions, ProgressCallback
from localrun.base.startup import look_less_often, switch_threads_often
from localrun.client.interface import EngineClient
from localrun.client.rpc.call_server import CallServer, start_thread
from localrun.client.rpc.wire import Checked, Loaded, Progress


class EngineHere(EngineClient, Protocol):
    """One loaded model of this process."""

    def watch_steps(self, at_end: Callable[[], None]) -> None:
        """Have the engine's thread call `at_end` where each step ends, before it chooses tokens."""
        ...


OpenEngine = Callable[[LoadOptions, ProgressCallback], EngineHere]

LEAVE_SECONDS = 3.0  # for an engine to close
OOM_SCORE = 500  # where memory runs out, this process is ended before those that hold the user's text
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve the engine of this process."""
    switch_threads_often()
    look_less_often()
    serve(_open_local)


def _open_local(options: LoadOptions, progress: ProgressCallback) -> EngineHere:
    from localrun.client.local import LocalClient

    return LocalClient(options, progress)


def serve(open_client: OpenEngine) -> None:
    """Answer calls until stdin ends; does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls, replies = _take_streams()
    _die_first()
    Worker(open_client, replies).work(calls)


class Worker(CallServer):
    """Loads one model on request, and generates with it."""

    def __init__(self, open_client: OpenEngine, replies: BinaryIO) -> None:
        super().__init__(replies)
        self._open_client = open_client

    def work(self, calls: BinaryIO) -> None:
        """Take calls until there are no more; ends the process."""
        self.answer_all(calls)
        start_thread(_leave_after, LEAVE_SECONDS)
        if self._client is not None:
            self._client.close()
        os._exit(0)

    def _load(self, number: int, options: LoadOptions) -> None:
        client = self._open_client(options, lambda done, total: self._say(number, Progress(done, total)))
        client.watch_steps(self._outbox.step_ends)
        self._client = client
        self._say(number, Loaded(self._client.info))

    def _check(self, number: int, options: LoadOptions, freed: int) -> None:
        from localrun.engine.load_plan import check_ahead

        check_ahead(options, freed)
        self._say(number, Checked())

    def _has_failed(self, error: LocalrunError) -> None:
        if isinstance(error, DeviceLostError):  # another process can use the GPU again
            self.end()

    def _leave(self) -> None:
        os._exit(0)


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
    """End with the parent even when stopped or stuck (Linux), and be the first to end when memory runs out."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(OOM_SCORE))


if __name__ == "__main__":
    main()

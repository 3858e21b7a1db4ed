"""The process that talks to MCP servers, as the chat uses it: asked, watched, and ended with all its servers."""

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import IO, Any, cast

from localrun.base.errors import UsageError
from localrun.base.own_process import start_module
from localrun.base.request import Json
from localrun.tools.mcp.limits import ServerError

MODULE = "localrun.tools.mcp.child"
CLOSE_SECONDS = 4.0  # for the servers to end, and the process after them
MAX_LINE = 64 << 20  # an answer has a few MiB at most
_TICK_SECONDS = 0.05


class McpProcess:
    """The process, started by the first question, and again after it died. Any thread may ask.

    `on_listed` receives the name of a server and its tools when the server changed them.
    """

    def __init__(self, on_listed: Callable[[str, Json], None] = lambda name, listed: None) -> None:
        self._on_listed = on_listed
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._outbox: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self._inboxes: dict[int, queue.SimpleQueue[Json | None]] = {}
        self._n_asked = 0
        self._is_closed = False

    def ask(self, question: Json, seconds: float, check: Callable[[], None] = lambda: None) -> Json:
        """The answer to a question.

        ServerError where none comes in time. `check` is called often while waiting, and may raise to stop.
        """
        number, inbox = self._send(question)
        give_up = time.monotonic() + seconds
        try:
            while True:
                with suppress(queue.Empty):
                    answer = inbox.get(timeout=_TICK_SECONDS)
                    if answer is None:
                        raise ServerError("the process that speaks to MCP servers ended")
                    if "error" in answer:
                        raise ServerError(answer["error"])
                    return answer
                check()
                if time.monotonic() > give_up:
                    raise ServerError(f"it did not answer within {seconds:g} seconds")
        except BaseException:
            self._outbox.put({"n": number, "do": "cancel"})
            raise
        finally:
            with self._lock:
                self._inboxes.pop(number, None)

    def close(self) -> None:
        """End the servers and the process, for good."""
        with self._lock:
            self._is_closed = True
            process = self._process
        if process is None:
            return
        self._outbox.put(None)
        with suppress(subprocess.TimeoutExpired):
            process.wait(CLOSE_SECONDS)
        process.kill()
        process.wait()

    def _send(self, question: Json) -> tuple[int, "queue.SimpleQueue[Json | None]"]:
        inbox: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        with self._lock:
            if self._is_closed:
                raise ServerError("the MCP servers were closed")
            if self._process is None or self._process.poll() is not None:
                self._start()
            self._n_asked += 1
            self._inboxes[self._n_asked] = inbox
            self._outbox.put({"n": self._n_asked, **question})
            return self._n_asked, inbox

    def _start(self) -> None:
        check_installed()
        try:
            self._process = process = start_module(MODULE)
        except OSError as error:
            raise ServerError(f"the process that speaks to MCP servers cannot be started: {error.strerror}") from None
        for inbox in self._inboxes.values():  # of the one before
            inbox.put(None)
        self._outbox = queue.SimpleQueue()
        for work in (partial(self._read, process), partial(_write, process, self._outbox), partial(_listen, process)):
            threading.Thread(target=work, name="localrun-mcp", daemon=True).start()

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        stream = cast(IO[bytes], process.stdout)
        with stream, suppress(OSError, ValueError):
            while len(line := stream.readline(MAX_LINE)) < MAX_LINE and line.endswith(b"\n"):
                self._hear(json.loads(line))
        process.kill()
        process.wait()
        with self._lock:
            if self._process is process:
                self._outbox.put(None)
                for inbox in self._inboxes.values():
                    inbox.put(None)

    def _hear(self, answer: Json) -> None:
        if "n" not in answer:
            self._on_listed(answer["server"], answer)
            return
        with self._lock:
            inbox = self._inboxes.get(answer["n"])
        if inbox is not None:
            inbox.put(answer)


def check_installed() -> None:
    """Raise UsageError where the package for MCP servers is missing."""
    if find_spec("mcp") is None:
        raise UsageError("MCP servers need the package mcp", "pip install 'localrun[mcp]'")


def _write(process: "subprocess.Popen[bytes]", outbox: "queue.SimpleQueue[Json | None]") -> None:
    """Pass on questions until None comes; a process that does not read blocks no one else."""
    stream = cast(IO[bytes], process.stdin)
    with suppress(OSError):
        while (question := outbox.get()) is not None:
            stream.write(json.dumps(question).encode() + b"\n")
            stream.flush()
    with suppress(OSError):
        stream.close()


def _listen(process: "subprocess.Popen[bytes]") -> None:
    """Drain its stderr, so that the pipe never fills."""
    stream = cast(Any, process.stderr)
    with stream, suppress(OSError, ValueError):
        while stream.read1(1 << 16):
            pass

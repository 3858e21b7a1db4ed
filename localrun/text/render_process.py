"""One process that renders chat templates, with a deadline and a memory limit.

jinja2's sandbox keeps a template from running code; nothing inside a process keeps it from running forever or from
filling the memory. So it runs in a process that can be killed and restarted for the next template.
"""

import atexit
import json
import marshal
import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import localrun
from localrun.base.errors import EngineError

RENDER_SECONDS = 1.5  # of computing: a busy machine does not make a template wrong
LONGEST_SECONDS = 10.0  # of anything
MEMORY_BYTES = 192 << 20  # that rendering may take, above what the process needs to start
START_SECONDS = 30.0
_STARTS_WITH = 64 << 20  # a bound on the memory of the process at rest
_WATCH_SECONDS = 0.02
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from localrun.text.render_worker import serve; serve()"
)
_KEPT_ENVIRONMENT = ("PATH", "SYSTEMROOT", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # no secrets


class RenderDiedError(Exception):
    """The process ended, or was killed, without an answer; `reason` is "time", "memory" or "crash"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RenderProcess:
    """The process, started by the first call; shared by all threads, one call at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0  # the process that started it: a fork of that one must not share its pipes
        self._is_ready = False
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one request of plain data. Raises RenderDiedError; EngineError if no process can be started."""
        request = marshal.dumps({"call": name, **arguments})
        with self._lock:
            try:
                return self._exchange(request)
            except RenderDiedError as error:
                if error.reason != "crash":
                    self._restart()
                    raise
                return self._exchange(request)  # it may have been killed before this call, which is then not to blame

    def warm_up(self) -> None:
        """Start the process without waiting for it, so that the first call finds it ready."""
        with self._lock:
            if not self._is_running():
                self._start()

    def stop(self) -> None:
        """End the process; the next call starts another."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):  # a request that was never read
                    stream.close()  # type: ignore[union-attr]

    def _exchange(self, request: bytes) -> dict[str, Any]:
        try:
            self._send(request)
            return self._wait(RENDER_SECONDS, LONGEST_SECONDS)
        except OSError:
            self.stop()
            raise RenderDiedError("crash") from None
        except BaseException:  # Ctrl-C, too: an answer that comes later is not for the next call
            self.stop()
            raise

    def _is_running(self) -> bool:
        return self._process is not None and self._owner == os.getpid() and self._process.poll() is None

    def _send(self, request: bytes) -> None:
        if not self._is_running():
            self._start()
        if not self._is_ready:
            try:
                self._is_ready = bool(self._wait(START_SECONDS, START_SECONDS))
            except RenderDiedError as error:
                message = "the process that renders chat templates did not start"
                raise EngineError(message, "give a raw prompt instead of messages") from error
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(len(request).to_bytes(8, "little") + request)
        self._process.stdin.flush()

    def _start(self) -> None:
        self.stop()
        root = str(Path(localrun.__file__).parents[1])
        command = [sys.executable, "-I", "-S", "-c", _BOOT, json.dumps([*filter(None, sys.path), root])]
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        try:
            process = subprocess.Popen(
                [*command, str(MEMORY_BYTES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        except OSError as error:
            message = f"the process that renders chat templates cannot be started: {error.strerror}"
            raise EngineError(message, "give a raw prompt instead of messages") from error
        self._process, self._owner, self._is_ready = process, os.getpid(), False
        self._answers = queue.SimpleQueue()
        threading.Thread(target=_read_all, args=(process.stdout, self._answers), daemon=True).start()

    def _restart(self) -> None:
        """Start another process, ready for the next call."""
        with suppress(EngineError):
            self._start()

    def _wait(self, seconds: float, longest: float) -> dict[str, Any]:
        """Wait for the next answer.

        Raises RenderDiedError for a process that ended, computed for `seconds`, took longer than `longest`, or grew
        beyond its limit.
        """
        assert self._process is not None
        deadline, began = time.monotonic() + longest, None
        while time.monotonic() < deadline:
            try:
                body = self._answers.get(timeout=_WATCH_SECONDS)
            except queue.Empty:
                memory, computed = _usage(self._process.pid)
                if memory > MEMORY_BYTES + _STARTS_WITH:
                    raise RenderDiedError("memory") from None
                began = computed if began is None else began
                if computed - began >= seconds:
                    raise RenderDiedError("time") from None
                continue
            if body is None:
                raise RenderDiedError("crash")
            answer: dict[str, Any] = json.loads(body)
            if answer.get("kind") == "memory":  # what is left of it is in pieces
                self._restart()
            return answer
        raise RenderDiedError("time")


def _read_all(stream: BinaryIO, answers: "queue.SimpleQueue[bytes | None]") -> None:
    """Pass on every answer, then None. A thread does this, since Windows cannot wait for a pipe with a deadline."""
    try:
        while len(header := stream.read(8)) == 8:
            answers.put(stream.read(int.from_bytes(header, "little")))
    except (OSError, ValueError):  # closed while reading
        pass
    finally:
        answers.put(None)


def _usage(pid: int) -> tuple[int, float]:
    """Memory of a process in bytes, and its seconds of CPU time; 0 where unknown."""
    import psutil

    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return int(process.memory_info().rss), times.user + times.system
    except psutil.Error:
        return 0, 0.0


RENDERER = RenderProcess()
atexit.register(RENDERER.stop)

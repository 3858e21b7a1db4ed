"""A child process of a tool: no secrets in its environment, limited in time and output, ended with its descendants."""

import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

from localrun.base.dataclass import dataclass
from localrun.tools.environment import minimal_environment
from localrun.tools.running_call import RunningCall, ToolError

_MARK = "LOCALRUN_CALL"  # tells which processes are of a call, wherever they went
_LOOK_SECONDS = 0.05
_TERM_SECONDS = 1.0  # between asking a process to end and ending it
_ROUNDS = 20
_CHUNK = 1 << 16
MAX_OUTPUT = 64 << 20  # bytes; a program that writes more is ended


@dataclass(frozen=True, slots=True)
class ChildOutput:
    """Beginning and end of a child's output, and the number of bytes dropped between them.

    `code` is None where the child was ended; `left` is the number of processes it left running, which were ended.
    """

    code: int | None
    head: bytes
    tail: bytes
    dropped: int
    left: int = 0


def run_child(
    command: Sequence[str],
    call: RunningCall,
    *,
    folder: Path | None = None,
    given: bytes = b"",
    most: int = 1 << 20,
) -> ChildOutput:
    """Run a program until it ends, the call is cancelled, or its time is up.

    `given` is its stdin, `most` the bytes of output to keep. Raises ToolError where it cannot be started.
    """
    mark = secrets.token_hex(16)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**minimal_environment(), "TERM": "dumb", _MARK: mark},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"{command[0]} cannot be started: {getattr(error, 'strerror', None) or error}") from None
    assert process.stdin is not None
    assert process.stdout is not None
    output = _Output(process.stdout, most)
    threading.Thread(target=_give, args=(process.stdin, given), daemon=True).start()
    left, code = 0, None
    try:
        while process.poll() is None and not (call.wait(_LOOK_SECONDS) or output.is_too_much) and call.seconds_left:
            pass
        code = process.poll()
    finally:
        left = _end_all(process, mark)
        output.finish()
    return ChildOutput(code, bytes(output.head), bytes(output.tail), output.dropped, left)


class _Output:
    """Read the output of a process on a thread, keeping its beginning and end."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self.head, self.tail, self.dropped = bytearray(), bytearray(), 0
        self._stream, self._half, self._total = stream, most // 2, 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def is_too_much(self) -> bool:
        """Whether the output exceeds MAX_OUTPUT."""
        return self._total > MAX_OUTPUT

    def finish(self) -> None:
        """Read the rest of the pipe."""
        self._thread.join(_TERM_SECONDS)
        if not self._thread.is_alive():
            self._stream.close()

    def _read(self) -> None:
        with suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), _CHUNK):
                self._total += len(chunk)
                room = max(self._half - len(self.head), 0)
                self.head += chunk[:room]
                self.tail += chunk[room:]
                self.dropped += max(len(self.tail) - self._half, 0)
                del self.tail[: -self._half]


def _give(stream: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError):  # it may end without reading
        stream.write(data)
    with suppress(OSError, ValueError):
        stream.close()


def _end_all(process: "subprocess.Popen[bytes]", mark: str) -> int:
    """End a process, its group, and other processes of the call. Returns the number of others."""
    others = _others(mark, process.pid)
    if process.poll() is None:
        _signal_group(process, "SIGTERM")
        for one in others:
            with suppress(psutil.Error):
                one.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TERM_SECONDS)
    for _ in range(_ROUNDS):  # one may start another meanwhile
        _signal_group(process, "SIGKILL")
        if process.poll() is None:
            process.kill()
        process.wait()
        running = _others(mark, process.pid)
        for one in running:
            with suppress(psutil.Error):
                one.kill()
        if not running:
            break
    return len(others)


def _signal_group(process: "subprocess.Popen[bytes]", name: str) -> None:
    if sys.platform != "win32":
        with suppress(OSError):
            os.killpg(process.pid, getattr(signal, name))


def _others(mark: str, pid: int) -> list[psutil.Process]:
    """Processes with the mark in their environment, and descendants that removed it."""
    found = {}
    with suppress(psutil.Error):
        found = {one.pid: one for one in psutil.Process(pid).children(recursive=True)}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != pid and process.environ().get(_MARK) == mark:
                found[process.pid] = process
    return [one for one in found.values() if _runs(one)]


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False

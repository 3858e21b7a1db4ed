"""One worker process: start, send, watch, end."""

import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from localrun.base.errors import EngineDiedError
from localrun.base.own_process import start_module
from localrun.client.rpc.channel import EngineCall, EngineChannel, Inbox
from localrun.client.rpc.codec import WireError
from localrun.client.rpc.wire import Load
from localrun.client.worker import process_stats
from localrun.client.worker.exit_reason import exit_error, oom_kills, stamps_of
from localrun.formats.files import Stamp

CLOSE_SECONDS = 2.0
_REAP_SECONDS = 5.0
_LAST_WORDS = 4096


class WorkerProcess(EngineChannel):
    """A running `module`.

    The thread that starts the process also reads from it until its end: Linux ties "die with your parent" to it.
    """

    def __init__(self, module: str) -> None:
        super().__init__()
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""
        self._files: dict[Path, Stamp] = {}  # of the model that it was asked to load
        started = threading.Event()
        self._life = threading.Thread(target=self._live, args=(started,), name="localrun-worker", daemon=True)
        self._life.start()
        started.wait()

    @property
    def pid(self) -> int | None:
        """Id of the process; None when it could not be started."""
        return self._process.pid if self._process is not None else None

    def held_bytes(self) -> int:
        """Main memory that is free again once it has ended."""
        return process_stats.held_bytes(self.pid)

    @property
    def can_answer(self) -> bool:
        """Whether the process is there and not stopped."""
        return super().can_answer and self._process is not None and self._process.poll() is None

    def call(self, ask: EngineCall) -> Inbox:
        if isinstance(ask, Load):
            self._files = stamps_of(ask.options.path)
        return super().call(ask)

    def kill(self, reason: str) -> None:
        """Kill the process, with a reason."""
        with self._lock:
            self._death = self._death or EngineDiedError(reason, "send the message again: the model is loaded for it")
        if self._process is not None:
            self._process.kill()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Let the process finish within some seconds, then end it."""
        self._outbox.put(None)
        self._life.join(seconds)
        if self._life.is_alive():
            self.kill("the engine was closed")
            self._life.join(_REAP_SECONDS)

    def _live(self, started: threading.Event) -> None:
        kills = 0
        try:
            kills = oom_kills()
            self._process = process = start_module(self._module)
        except OSError as error:
            reason = f"the engine's process cannot be started: {error.strerror or error}"
            self._bury(EngineDiedError(reason, "close other programs, and try again"))
            return
        finally:
            started.set()
        stdin, stdout, stderr = (cast(IO[bytes], s) for s in (process.stdin, process.stdout, process.stderr))
        threads = [
            threading.Thread(target=self._write, args=(stdin,), daemon=True),
            threading.Thread(target=self._listen, args=(stderr,), daemon=True),
        ]
        for thread in threads:
            thread.start()
        with stdout:
            try:
                self._read(cast(BinaryIO, stdout))
            except WireError as error:
                self.kill(f"the engine's process sent something unreadable: {error}")
        self._outbox.put(None)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_SECONDS / 5)
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_SECONDS)
        threads[1].join(_REAP_SECONDS / 5)
        self._bury(exit_error(process.returncode, self._said, was_oom=oom_kills() > kills, files=self._files))
        process.wait()  # one in an uninterruptible wait

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            while heard := cast(Any, stream).read1(1 << 16):
                self._said = (self._said + heard)[-_LAST_WORDS:]

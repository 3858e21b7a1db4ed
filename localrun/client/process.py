"""One worker process: started, spoken to, watched, and ended."""

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import localrun
from localrun.base.errors import EngineDiedError, UsageError
from localrun.client import process_stats
from localrun.client.codec import WireError
from localrun.client.exit_reason import exit_error, oom_kills, stamps_of
from localrun.client.watchdog import Watchdog
from localrun.client.wire import (
    Alive,
    Call,
    Cancel,
    Explain,
    Generate,
    Load,
    Preview,
    Reply,
    ReplyContent,
    View,
    pack,
    read_messages,
)
from localrun.formats.files import Stamp

WorkerCall = Load | Generate | View | Preview | Explain

TICK_SECONDS = 0.25
CLOSE_SECONDS = 2.0
_REAP_SECONDS = 5.0
_LAST_WORDS = 4096
_SECRET = re.compile(r"(TOKEN|KEY|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)


@dataclass(eq=False, slots=True)
class Inbox:
    """Where the answers to one call arrive; None when no more can."""

    number: int
    answers: "queue.SimpleQueue[ReplyContent | None]" = field(default_factory=queue.SimpleQueue)


class WorkerProcess:
    """A running `module`. Any thread may call; none ever waits for a pipe, so a stopped process blocks nobody.

    The thread that starts the process also reads from it until its end: Linux ties "die with your parent" to it.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._lock = threading.Lock()
        self._inboxes: dict[int, Inbox] = {}
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._n_calls = self._n_heard = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""
        self._files: dict[Path, Stamp] = {}  # of the model that it was asked to load
        self._death: EngineDiedError | None = None
        started = threading.Event()
        self._life = threading.Thread(target=self._live, args=(started,), name="localrun-worker", daemon=True)
        self._life.start()
        started.wait()

    @property
    def pid(self) -> int | None:
        """Its number in the system; None when it could not be started."""
        return self._process.pid if self._process is not None else None

    def held_bytes(self) -> int:
        """Main memory that is free again once it has ended."""
        return process_stats.held_bytes(self.pid)

    @property
    def can_answer(self) -> bool:
        """Whether the process is there and not stopped."""
        gone = self._death is not None or self._process is None or self._process.poll() is not None
        return not gone and self._life.is_alive() and not process_stats.is_stopped(self.pid)

    def call(self, ask: WorkerCall) -> Inbox:
        """Send a call. UsageError for what cannot be sent."""
        if isinstance(ask, Load):
            self._files = stamps_of(ask.options.path)
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

    def cancel(self, inbox: Inbox) -> None:
        """Ask for an early end of that call."""
        self._outbox.put(pack(Call(inbox.number, Cancel())))

    def drop(self, inbox: Inbox) -> None:
        """No longer listen to that call."""
        with self._lock:
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

    def kill(self, reason: str) -> None:
        """End the process now, for this reason."""
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
            self._process = process = _spawn(self._module)
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
                for reply in read_messages(cast(BinaryIO, stdout), Reply):
                    self._hear(reply)
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
        process.wait()  # the rare one that the system cannot end at once

    def _hear(self, reply: Reply) -> None:
        self._n_heard += 1
        inbox = self._inboxes.get(reply.number)
        if inbox is not None and not isinstance(reply.answer, Alive):
            inbox.answers.put(reply.answer)

    def _bury(self, reason: EngineDiedError) -> None:
        with self._lock:
            self._death = self._death or reason
            for inbox in self._inboxes.values():
                inbox.answers.put(None)

    def _died(self) -> EngineDiedError:
        """A new error for every waiter: one that is raised twice collects the tracebacks of both."""
        if self._death is None:  # nor is it dead: only the thread that listens is not in this process
            return EngineDiedError("this process was forked while the engine worked for it", "send the message again")
        return EngineDiedError(self._death.message, self._death.hint)

    def _write(self, stream: IO[bytes]) -> None:
        with suppress(OSError):
            while (frame := self._outbox.get()) is not None:
                stream.write(frame)
                stream.flush()
        with suppress(OSError):
            stream.close()

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            while heard := cast(Any, stream).read1(1 << 16):
                self._said = (self._said + heard)[-_LAST_WORDS:]


def _spawn(module: str) -> subprocess.Popen[bytes]:
    """A process of its own session: Ctrl-C in the terminal is for us alone."""
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    pipe = subprocess.PIPE
    command = [sys.executable, "-P", "-m", module]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=_environment(), **apart)


def _environment() -> dict[str, str]:
    """Ours without secrets, and with our module path: a checkout, a wheel and an editable install all find localrun."""
    root = str(Path(localrun.__file__).parents[1])
    kept = {name: value for name, value in os.environ.items() if not _SECRET.search(name)}
    return {**kept, "PYTHONPATH": os.pathsep.join(dict.fromkeys([*filter(None, sys.path), root]))}

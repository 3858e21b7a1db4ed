"""Host of a shared engine: other programs of this user connect, and call it like a worker."""

import os
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field

import localrun
from localrun.base.dataclass import dataclass
from localrun.base.errors import EngineError, LocalrunError, UsageError
from localrun.client.attach import private_socket
from localrun.client.interface import EngineClient
from localrun.client.rpc.call_server import CallServer, start_thread
from localrun.client.rpc.codec import WireError
from localrun.client.rpc.wire import Attach, Call, Ended, Loaded, as_failure, read_messages

HELLO_SECONDS = 10.0  # for a program to send its first message
MAX_PROGRAMS = 64
MAX_CALLS = 256  # of one program at once
MAX_NAME = 80  # characters of the name of a program


@dataclass(frozen=True, slots=True)
class AttachedProgram:
    """A program that uses the engine. `since` in seconds since 1970."""

    name: str
    pid: int | None
    since: float = field(default_factory=time.time)

    def __str__(self) -> str:
        return self.name if self.pid is None else f"{self.name} ({self.pid})"


Admit = Callable[[Attach, AttachedProgram], EngineClient]


class AttachHost:
    """Listen from construction on. Raises OSError where that is impossible.

    `admit` gives a program the engine that it calls, or raises LocalrunError with what is in the way. It is called on a
    thread of its own.
    """

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        self._listener, self.path = private_socket.listen()
        ended, end = os.pipe()
        self._ended, self._end = os.fdopen(ended, "rb"), os.fdopen(end, "wb")  # closing one wakes the other
        self._sessions: list[_Session] = []
        start_thread(self._accept)

    @property
    def programs(self) -> list[AttachedProgram]:
        """Programs attached now."""
        return [session.program for session in list(self._sessions) if session.program is not None]

    def end_all(self, reason: str) -> None:
        """End the session of every program, with the reason."""
        for session in list(self._sessions):
            session.dismiss(reason)

    def close(self, reason: str) -> None:
        """Stop listening."""
        self._end.close()
        private_socket.remove(self.path)
        self.end_all(reason)

    def _accept(self) -> None:
        with self._listener, self._ended, selectors.DefaultSelector() as ready:
            ready.register(self._listener, selectors.EVENT_READ)
            ready.register(self._ended, selectors.EVENT_READ)
            while all(key.fileobj is self._listener for key, _ in ready.select()):
                with suppress(OSError):
                    connection, _ = self._listener.accept()
                    if private_socket.is_own(connection) and len(self._sessions) < MAX_PROGRAMS:
                        start_thread(self._serve, connection)
                    else:
                        connection.close()

    def _serve(self, connection: socket.socket) -> None:
        """Serve one program, from its first message to its last."""
        session = _Session(connection)
        self._sessions.append(session)  # before it is admitted, so that a change of the model ends it
        try:
            session.serve(self._admit)
        finally:
            self._sessions.remove(session)
            session.end()


class _Session(CallServer):
    """A connection, and the program at its other end once it is known."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(HELLO_SECONDS)
        super().__init__(connection.makefile("wb"))
        self._connection = connection
        self.program: AttachedProgram | None = None

    def serve(self, admit: Admit) -> None:
        """Answer its calls until it leaves."""
        with suppress(OSError, WireError, StopIteration), self._connection.makefile("rb") as calls:
            hello = next(read_messages(calls, Call))
            self._connection.settimeout(None)
            try:
                self._client = self._admitted(hello, admit)
            except LocalrunError as error:
                self._say(hello.number, as_failure(error))
                return
            self._say(hello.number, Loaded(self._client.info))
            self.answer_all(calls)

    def dismiss(self, reason: str) -> None:
        """End the session, with the reason."""
        self._say(0, Ended(reason))
        self.end()

    def _admitted(self, hello: Call, admit: Admit) -> EngineClient:
        ask = hello.ask
        if not isinstance(ask, Attach):
            raise UsageError("this program does not say what it wants")
        if ask.version != localrun.__version__:
            raise UsageError(f"the running localrun is version {localrun.__version__}")
        program = AttachedProgram(ask.program[:MAX_NAME], private_socket.peer_of(self._connection).pid)
        client = admit(ask, program)
        self.program = program
        return client

    def _take(self, call: Call) -> None:
        if len(self._jobs) < MAX_CALLS or call.number in self._jobs:
            super()._take(call)
        else:
            self._say(call.number, as_failure(EngineError("too many calls are under way", "wait for one to end")))

    def _leave(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)  # ends the thread that reads from it
        self._connection.close()

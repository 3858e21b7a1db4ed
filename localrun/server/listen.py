"""Sockets and signals of a server: listening until it is stopped."""

import asyncio
import contextlib
import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import psutil
import uvicorn

from localrun.base.errors import UsageError
from localrun.server.app import build_app
from localrun.server.connection import BoundedConnection
from localrun.server.guard import MAX_HEADER_BYTES, is_loopback
from localrun.server.options import ServerOptions
from localrun.server.refusal import stopping
from localrun.server.service import Service

DRAIN_SECONDS = 10  # for answers under way
LEAVE_SECONDS = 1  # for clients to take the error that ends a late one
_TICK = 0.1
DATE_SECONDS = 1.0  # between looks at the clock, for the date in headers
KEEP_ALIVE_SECONDS = 15
BACKLOG = 512
ANSWER_SECONDS = 1.0  # for whoever has a Unix socket


@contextlib.contextmanager
def bound(options: ServerOptions) -> Iterator[socket.socket]:
    """`bind` for a `with` block, after which a Unix socket is removed."""
    listener, path = bind(options), Path(options.socket)
    own = path.lstat().st_ino if options.socket else None
    try:
        yield listener
    finally:
        listener.close()
        with contextlib.suppress(OSError):
            if own == path.lstat().st_ino:  # not another server's, which took its place
                path.unlink()


def bind(options: ServerOptions) -> socket.socket:
    """A listening socket. Raises UsageError, naming the program that has the port."""
    if not options.socket and not is_loopback(options.host) and not options.api_key:
        what = f"{options.host} can be reached from other machines"
        raise UsageError(what, "--api-key KEY keeps strangers out; without one the server stays on 127.0.0.1")
    if options.socket:
        return _unix(Path(options.socket))
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"{options.host} is no address of this machine: {error.strerror}") from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        holder = _holder(options.port)
        raise UsageError(
            f"port {options.port} of {options.host} cannot be had: {holder or error.strerror}",
            "--port 0 takes a free one",
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The URL of a listening socket; empty for a Unix socket."""
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        return ""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class HttpServer(uvicorn.Server):
    """uvicorn, silent on stdout and with signals left to its caller."""

    def __init__(self, service: Service) -> None:
        self.app, self._service = build_app(service), service
        self._is_hurried = False
        self._look: Callable[[], object] = lambda: None  # have the event loop look whether it shall end
        super().__init__(
            uvicorn.Config(
                self.app,
                http=BoundedConnection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",  # not of what clients send: an upgrade to WebSockets, or what is no HTTP
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=DRAIN_SECONDS + 3 * LEAVE_SECONDS,
                h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            )
        )

    def stop(self) -> None:
        """Let the answers under way end, for ten seconds, and then end; called again, end them now. From any thread."""
        self._is_hurried = self.should_exit
        self.should_exit = True
        self._look()

    async def unless_stopped(self, work: Coroutine[None, None, None]) -> bool:
        """Do some work before serving, which is cancelled when the server is stopped. Whether it is done."""
        task = asyncio.ensure_future(work)
        while not task.done() and not self.should_exit:
            await asyncio.wait((task,), timeout=_TICK)
        if task.cancel():
            return False
        await task
        return True

    async def main_loop(self) -> None:
        """Serve until stopped. uvicorn looks ten times a second whether it is, on a core that the engine computes with;
        the date in headers wants one look a second."""
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()

        def look() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(stopped.set)

        self._look = look
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), DATE_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        late = asyncio.ensure_future(self._end_late_answers())
        try:
            await super().shutdown(sockets)
        finally:
            late.cancel()

    async def _end_late_answers(self) -> None:
        """End with an error what is not answered in time, then leave clients that do not take it."""
        began = time.monotonic()
        while not self._is_hurried and time.monotonic() - began < DRAIN_SECONDS:
            await asyncio.sleep(_TICK)
        for live in list(self._service.registry.requests.values()):
            live.refuse(stopping())
        await asyncio.sleep(LEAVE_SECONDS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def stopped_by_signals(server: HttpServer) -> Iterator[list[int]]:
    """While open, SIGINT and SIGTERM make a server finish its answers and end; a second one ends them. Gives the
    signals that came. An ignored signal, such as Ctrl-C in the background of a shell, stays ignored."""
    came: list[int] = []

    def stop(number: int, frame: object) -> None:
        server.stop()
        came.append(number)

    heard = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) != signal.SIG_IGN]
    kept = {one: signal.signal(one, stop) for one in heard}
    try:
        yield came
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)


def stop_as_stdin_ends(server: HttpServer) -> None:
    """Have a server end as its stdin does, or, where that brought the id of a process, once that one has ended, too."""

    def wait() -> None:
        with contextlib.suppress(psutil.Error, ValueError):
            program = psutil.Process(int(os.read(0, 32)))
            while os.read(0, 32):
                pass
            while program.is_running() and program.status() != psutil.STATUS_ZOMBIE:
                time.sleep(_TICK)
        server.stop()

    threading.Thread(target=wait, daemon=True).start()


def _unix(path: Path) -> socket.socket:
    """A socket that only this user can open. A stale one is replaced."""
    if sys.platform == "win32":
        raise UsageError("Windows has no Unix sockets", "leave --socket out")
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode) and _is_stale(path):
            path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if not os.path.lexists(path):
            raise UsageError(f"{path}: {error.strerror or error}", "choose another path") from None
        if stat.S_ISSOCK(path.lstat().st_mode):
            raise UsageError(f"another program has {path}", "choose another path, or stop that program") from None
        raise UsageError(f"{path} is there, and no socket", "choose another path, or remove it") from None
    finally:
        os.umask(before)
    return listener


def _is_stale(path: Path) -> bool:
    """Whether no program has a socket any more; one that is busy, or of another kind, does not refuse."""
    if sys.platform == "win32":
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(ANSWER_SECONDS)
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _holder(port: int) -> str:
    """The program that listens on a port, as far as this user may see; empty if unknown."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
                if connection.pid is None:
                    return "another program has it"
                return f"{psutil.Process(connection.pid).name()} has it (process {connection.pid})"
    return ""

"""A server that is a program: started, spoken to line by line, and ended with its descendants.

This replaces the transport of `mcp`, whose lines have no limit: a server that sends too long a message is ended. Other
output is skipped; the last lines are kept for the user.
"""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from localrun.base.units import gib
from localrun.tools.mcp.guard import ServerGuard
from localrun.tools.mcp.limits import FINISH_SECONDS, MAX_MESSAGE, TERMINATE_SECONDS, ServerError

_POLL_SECONDS = 0.01
_LAST_WORDS = 2048

Received = MemoryObjectReceiveStream[SessionMessage | Exception]
Sent = MemoryObjectSendStream[SessionMessage]


class StdioServer:
    """One program that is a server. `problem` says why it cannot be used any more; empty while it can."""

    def __init__(
        self, command: str, args: list[str], environment: Mapping[str, str], cwd: str, guard: ServerGuard
    ) -> None:
        self._command, self._args, self._environment, self._cwd = command, args, dict(environment), cwd
        self._guard = guard
        self._said = b""
        self._printed = b""  # the last line of its output that was no message
        self._was_ended = self._is_left = False
        self.problem = ""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[Received, Sent]]:
        """Start the program and yield the streams of its messages; leaving the block ends it. Raises ServerError."""
        process = await self._start()
        self._guard.watch(process.pid)
        to_us, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, from_us = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(process, to_us)),
            asyncio.create_task(_write(process, from_us)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield received, sent
        finally:
            self._is_left = True
            with anyio.CancelScope(shield=True):
                await _end(process)
                self._guard.forget(process.pid)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for stream in (to_us, received, sent, from_us):
                    stream.close()

    @property
    def has_ended(self) -> bool:
        """Whether the server cannot be used any more; `problem` says why."""
        return bool(self.problem)

    @property
    def last_words(self) -> str:
        """The last errors, or else output; empty for a server that localrun ended."""
        words = b"" if self._was_ended else self._said or self._printed
        return " ".join(words.decode("utf-8", "replace").split())

    async def _start(self) -> asyncio.subprocess.Process:
        path = shutil.which(self._command, path=self._environment.get("PATH"))  # Windows does not look for npx.cmd
        if path is None:
            raise ServerError(f"there is no program {self._command}")
        pipe = asyncio.subprocess.PIPE
        try:
            return await asyncio.create_subprocess_exec(
                path,
                *self._args,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=self._environment,
                cwd=self._cwd or None,
                limit=MAX_MESSAGE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ServerError(f"{self._command} cannot be started: {error}") from None

    async def _read(self, process: asyncio.subprocess.Process, to_us: MemoryObjectSendStream[SessionMessage]) -> None:
        assert process.stdout
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with to_us:
                try:
                    while line := await process.stdout.readline():
                        await self._pass_on(line, to_us)
                except ServerError as error:
                    self.problem = str(error)
                except ValueError:  # as readline says it
                    self.problem = f"it sent a message of more than {gib(MAX_MESSAGE)}"
                if self.problem:
                    self._was_ended = True
                    _signal(process, "kill")
                    self._guard.forget(process.pid)
                    return
                if self._is_left:
                    return
                if has_ended := await _ends_within(process, FINISH_SECONDS):
                    self._guard.forget(process.pid)
                self.problem = f"it ended with exit code {process.returncode}" if has_ended else "it closed its output"

    async def _pass_on(self, line: bytes, to_us: MemoryObjectSendStream[SessionMessage]) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if b'"jsonrpc"' in line:  # an answer, it may be: nobody should wait for it
                raise ServerError("it sent a message that cannot be read") from None
            self._printed = line[:_LAST_WORDS]
            return
        await to_us.send(SessionMessage(message))

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr
        while heard := await process.stderr.read(1 << 16):
            self._said = (self._said + heard)[-_LAST_WORDS:]


async def _write(process: asyncio.subprocess.Process, from_us: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin
    with suppress(OSError):  # its end is noticed where it is read from
        async for sent in from_us:
            process.stdin.write(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await process.stdin.drain()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program as the specification says: close its input, then a signal to all its processes, then by force."""
    assert process.stdin
    process.stdin.close()
    for how, seconds in (("", FINISH_SECONDS), ("terminate", TERMINATE_SECONDS), ("kill", FINISH_SECONDS)):
        if how:
            _signal(process, how)
        if await _ends_within(process, seconds):
            break
    _signal(process, "kill")  # those that it left behind


async def _ends_within(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether it ends in that time. `wait` would also wait for programs that hold its pipes."""
    give_up = asyncio.get_running_loop().time() + seconds
    while process.returncode is None and asyncio.get_running_loop().time() < give_up:
        await asyncio.sleep(_POLL_SECONDS)
    return process.returncode is not None


def _signal(process: asyncio.subprocess.Process, how: str) -> None:
    """Signal the server and its descendants to end."""
    with suppress(OSError):  # it is gone
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGTERM if how == "terminate" else signal.SIGKILL)
            return
        _end_tree(process.pid)


def _end_tree(pid: int) -> None:
    """End a process tree on Windows, which has no process groups."""
    import psutil

    with suppress(psutil.Error):
        parent = psutil.Process(pid)
        for one in (*parent.children(recursive=True), parent):
            with suppress(psutil.Error):
                one.kill()

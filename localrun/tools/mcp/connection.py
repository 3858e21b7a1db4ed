"""Connection to one server, in the process that imports `mcp`."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx2
from mcp import Client, MCPError, types
from pydantic import ValidationError

import localrun
from localrun.base.request import Json
from localrun.tools.mcp.guard import ServerGuard
from localrun.tools.mcp.http import UrlServer
from localrun.tools.mcp.limits import (
    MAX_DESCRIPTION,
    MAX_NAME,
    MAX_SCHEMA,
    MAX_TEXT,
    MAX_TOOLS,
    START_SECONDS,
    ServerError,
)
from localrun.tools.mcp.results import text_of
from localrun.tools.mcp.stdio import StdioServer

_PAGES = 32  # of a list of tools
DOUBT_SECONDS = 5.0  # for a server to list its tools, after a call that it did not answer
_RELIST_SECONDS = 1.0
_WORDS = 300  # characters of what a server says that the user is shown


class McpConnection:
    """A server that the first question starts. `on_change` receives the tools when the server changes them."""

    def __init__(self, server: Json, on_change: Callable[[Json], None], guard: ServerGuard) -> None:
        self._server, self._on_change = server, on_change
        self._transport = _transport(server, guard)
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._changes = asyncio.Event()
        self._listed: Json = {}
        self._is_doubtful = False  # whether it answers, and what its tools are
        self._life = asyncio.create_task(self._live())

    @property
    def is_open(self) -> bool:
        """Whether the server can still be asked."""
        return not self._leave.is_set() and not (self._ready.done() and self._transport.has_ended)

    async def is_well(self) -> bool:
        """Whether the server answers, after a call without an answer or an announcement made that doubtful.

        A server that does not answer is closed.
        """
        if self._is_doubtful and self._ready.done() and self.is_open:
            self._is_doubtful = False
            try:
                async with asyncio.timeout(DOUBT_SECONDS):
                    self._listed = await _list_tools(self._ready.result())
            except Exception:
                self._leave.set()
        return self.is_open

    async def tools(self) -> Json:
        """Tools of the server, and notes about those that are left out. Raises ServerError."""
        await self._client()
        return self._listed

    async def call(self, tool: str, arguments: Json, seconds: float) -> Json:
        """The result of a call as text. Raises ServerError where there is none."""
        client = await self._client()
        try:
            result = await client.call_tool(tool, arguments, read_timeout_seconds=seconds)
        except asyncio.CancelledError:
            self._is_doubtful = True
            raise
        except Exception as error:
            self._is_doubtful = True
            raise ServerError(self._reason(error)) from None
        text = text_of(result)
        size = len(text.encode("utf-8", "replace"))
        kept = text[:MAX_TEXT]
        more = size - len(kept.encode("utf-8", "replace"))
        return {"text": kept, "is_error": bool(result.is_error), "more_bytes": more}

    async def close(self) -> None:
        """End the connection."""
        self._leave.set()
        if not self._ready.done():
            self._life.cancel()
        await asyncio.wait((self._life,))

    async def _client(self) -> Client:
        return await asyncio.shield(self._ready)

    async def _live(self) -> None:
        """Connect, and stay connected until closed."""
        try:
            async with asyncio.timeout(START_SECONDS) as clock, self._new_client() as client:
                self._listed = await _list_tools(client)
                clock.reschedule(None)
                self._ready.set_result(client)
                watching = asyncio.create_task(self._watch(client))
                try:
                    await self._relist(client)
                finally:
                    watching.cancel()
        except Exception as error:
            self._fail(self._reason(error))
        finally:
            self._fail("it was ended")
            self._leave.set()

    def _fail(self, reason: str) -> None:
        """Report to waiting callers why the server cannot be used."""
        if not self._ready.done():
            self._ready.set_exception(ServerError(reason))
            self._ready.exception()  # it may be that nobody waits

    def _new_client(self) -> Client:
        return Client(
            self._transport.connect(),
            read_timeout_seconds=START_SECONDS,
            client_info=types.Implementation(name="localrun", version=localrun.__version__),
            message_handler=self._hear,
            cache=None,
        )

    async def _watch(self, client: Client) -> None:
        """Listen for changed tools on a server of 2026-07-28; older ones announce them."""
        with suppress(Exception):
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._note_change()

    async def _hear(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._note_change()

    def _note_change(self) -> None:
        self._is_doubtful = True
        self._changes.set()

    async def _relist(self, client: Client) -> None:
        """List the tools again whenever they changed, at a limited rate."""
        leave = asyncio.create_task(self._leave.wait())
        while not leave.done():
            changes = asyncio.create_task(self._changes.wait())
            await asyncio.wait((leave, changes), return_when=asyncio.FIRST_COMPLETED)
            changes.cancel()
            if self._changes.is_set() and not leave.done():
                self._changes.clear()
                self._listed = await _list_tools(client)
                self._on_change(self._listed)
                await asyncio.wait((leave,), timeout=_RELIST_SECONDS)

    def _reason(self, error: BaseException) -> str:
        """Why the server cannot be used, in words for the user."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, TimeoutError):
            said = f"it did not answer within {START_SECONDS:g} seconds"
        elif isinstance(error, httpx2.TransportError):
            said = f"it cannot be reached: {error}"
        elif isinstance(error, ValidationError):
            first = error.errors()[0]
            said = f"it sent something else than was asked for: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        elif isinstance(error, MCPError | ServerError | RuntimeError | OSError):
            said = str(error)
        else:
            said = f"{type(error).__name__}: {error}"
        said, words = said[:_WORDS], self._transport.last_words[-_WORDS:]
        return f"{self._transport.problem or said}{f'; it said: {words}' if words else ''}"


def _transport(server: Json, guard: ServerGuard) -> StdioServer | UrlServer:
    if server.get("url"):
        return UrlServer(server["url"], server["headers"])
    return StdioServer(server["command"], server["args"], server["env"], server["cwd"], guard)


async def _list_tools(client: Client) -> Json:
    """The tools of a server as plain data, limited in number and size."""
    tools: list[Json] = []
    notes: list[str] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            if len(tools) >= MAX_TOOLS:
                notes.append(f"it has more than {MAX_TOOLS} tools; the others are left out")
                return {"tools": tools, "notes": notes}
            if not 0 < len(tool.name) <= MAX_NAME:
                notes.append(f"a tool is left out: its name has {len(tool.name):,} characters")
                continue
            if len(json.dumps(tool.input_schema)) > MAX_SCHEMA:
                notes.append(f"{tool.name} is left out: the description of its arguments is too long")
                continue
            tools.append(
                {
                    "name": tool.name,
                    "description": (tool.description or tool.title or "")[:MAX_DESCRIPTION],
                    "parameters": tool.input_schema,
                }
            )
        cursor = page.next_cursor
        if cursor is None:
            break
    return {"tools": tools, "notes": notes}

"""The process that talks to MCP servers, so that the slow import of `mcp` is not the chat's.

Questions come on stdin, answers go to stdout: a JSON object a line. It ends its servers, and itself, when stdin ends.
"""

import asyncio
import faulthandler
import json
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from localrun.base.request import Json
from localrun.tools.mcp.guard import ServerGuard
from localrun.tools.mcp.limits import ServerError

if TYPE_CHECKING:
    from localrun.tools.mcp.connection import McpConnection

STUCK_SECONDS = 15.0  # that one step may compute; a server that makes it take longer ends this process


def main() -> None:
    """Answer questions until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    guard = ServerGuard()
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # whatever a library prints
    logging.disable()
    from localrun.tools.mcp.connection import McpConnection  # mcp takes longer to import than a step of the loop may

    asyncio.run(McpChild(answers, guard, McpConnection).serve(questions))
    os._exit(0)  # the thread that reads may still wait


class McpChild:
    """The requested servers, by name."""

    def __init__(self, answers: BinaryIO, guard: ServerGuard, connection_class: "type[McpConnection]") -> None:
        self._answers, self._guard, self._connection_class = answers, guard, connection_class
        self._connections: dict[str, McpConnection] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop

    async def serve(self, questions: BinaryIO) -> None:
        """Answer questions until their end, then end all servers."""
        self._loop = asyncio.get_running_loop()
        heart = asyncio.create_task(_beat())
        over = asyncio.Event()
        threading.Thread(target=self._read, args=(questions, over), daemon=True).start()
        await over.wait()
        for task in self._tasks.values():
            task.cancel()
        ends = [*self._closing, *(one.close() for one in self._connections.values())]
        await asyncio.gather(*ends, return_exceptions=True)
        heart.cancel()

    def _read(self, questions: BinaryIO, over: asyncio.Event) -> None:
        with suppress(OSError, ValueError):
            for line in questions:
                self._loop.call_soon_threadsafe(self._take, json.loads(line))
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(over.set)

    def _take(self, question: Json) -> None:
        number = question["n"]
        if question["do"] == "cancel":
            if number in self._tasks:
                self._tasks[number].cancel()
            return
        self._tasks[number] = task = asyncio.create_task(self._answer(number, question))
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _answer(self, number: int, question: Json) -> None:
        try:
            answer = await self._answer_to(question)
        except ServerError as error:
            answer = {"error": str(error)}
        except asyncio.CancelledError:
            answer = {"error": "it was stopped"}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        self._say({"n": number, **answer})

    async def _answer_to(self, question: Json) -> Json:
        connection = self._connection(question["server"])
        if not await connection.is_well():
            connection = self._connection(question["server"])
        if question["do"] == "list":
            return await connection.tools()
        return await connection.call(question["tool"], question["arguments"], question["seconds"])

    def _connection(self, server: Json) -> "McpConnection":
        key = json.dumps(server, sort_keys=True)
        connection = self._connections.get(key)
        if connection is None or not connection.is_open:
            if connection is not None:
                self._closing.add(closing := asyncio.create_task(connection.close()))
                closing.add_done_callback(self._closing.discard)
            connection = self._connection_class(server, partial(self._tell, server["name"]), self._guard)
            self._connections[key] = connection
        return connection

    def _tell(self, server: str, listed: Json) -> None:
        self._say({"server": server, **listed})

    def _say(self, answer: Json) -> None:
        self._answers.write(json.dumps(answer).encode() + b"\n")
        self._answers.flush()


async def _beat() -> None:
    """End the process when its event loop is stuck, as in an endless pattern search of a library. Only what it computes
    counts: on a busy machine, or stopped, a process is not stuck. Windows knows no such clock."""
    while True:
        if sys.platform == "win32":
            faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
        else:
            signal.setitimer(signal.ITIMER_VIRTUAL, STUCK_SECONDS)  # its signal ends a process that handles none
        await asyncio.sleep(STUCK_SECONDS / 3)


if __name__ == "__main__":
    main()

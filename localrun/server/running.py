"""Answers under way: one thread each reads events, and one mailbox brings them all to the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from localrun.base.errors import LocalrunError, unexpected
from localrun.base.events import Done, Event
from localrun.base.kept_threads import KeptThreads
from localrun.base.request import Request
from localrun.client.interface import Cancellation, EngineClient
from localrun.server.answer_memory import AnswerMemory

THREADS = KeptThreads("answer")

NumberedEvent = tuple[int, Event | LocalrunError]


class Mailbox:
    """Events of several threads, for one reader on the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._letters: deque[NumberedEvent] = deque()
        self.there = asyncio.Event()  # set while there are letters, and sometimes where there are none any more
        self._is_called = False  # a callback of the loop is under way

    def put(self, letter: NumberedEvent) -> None:
        """Put an event, from any thread. Many events take one call of the loop."""
        self._letters.append(letter)
        if not self._is_called:
            self._is_called = True
            try:
                self._loop.call_soon_threadsafe(self.there.set)
            except RuntimeError:  # the loop has ended
                return

    def take(self) -> list[NumberedEvent]:
        """Take all events."""
        self.there.clear()
        self._is_called = False
        letters = []
        while self._letters:
            letters.append(self._letters.popleft())
        return letters


class RunningAnswer:
    """One generation, read on a thread of its own. The last thing it puts is Done or an error.

    Ids that `memory` has of its conversation are not encoded again, and its own are remembered.
    """

    def __init__(
        self, client: EngineClient, request: Request, mailbox: Mailbox, index: int, memory: AnswerMemory
    ) -> None:
        self._put: Callable[[Event | LocalrunError], None] = lambda said: mailbox.put((index, said))
        self._cancellation = Cancellation()
        THREADS.run(partial(self._read, client, request, memory))

    def cancel(self) -> None:
        """Cancel within a step; events that were not sent are dropped. From any thread, any number of times."""
        self._cancellation.cancel()

    def raise_priority(self) -> None:
        """Have it go before lower classes. From any thread."""
        self._cancellation.raise_priority()

    def _read(self, client: EngineClient, request: Request, memory: AnswerMemory) -> None:
        try:
            for event in self._cancellation.watch(client.generate(memory.recall(client.info, request))):
                if isinstance(event, Done):
                    memory.keep(client.info, request, event)  # before the client can go on from it
                    self._put(event)
                    return
                self._put(event)
            raise AssertionError("a generation always ends with Done")
        except LocalrunError as error:
            self._put(error)
        except Exception as error:  # a bug of ours must reach the client, not vanish with the thread
            self._put(unexpected(error))

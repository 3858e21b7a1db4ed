"""Reading files for a message on a thread: how far it is, and a stop."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from textual.message import Message
from textual.message_pump import MessagePump

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.chat.long_text.condensed_file import ReadingProgress, ReadingWatch

T = TypeVar("T")
_SHORT = 1.0  # seconds for which nothing is told


class FileReading:
    """Readings under way for a widget, which gets a message of their progress."""

    @dataclass
    class Progressed(Message):
        """How far a file is read, in words; none when its reading has ended."""

        words: str

    def __init__(self, owner: MessagePump) -> None:
        self._owner = owner
        self._stops: list[threading.Event] = []  # of those under way

    @property
    def under_way(self) -> bool:
        return bool(self._stops)

    async def read(self, read: Callable[[ReadingWatch], T]) -> T:
        """Read on a thread, which ends soon where nobody waits any more. Raises LocalrunError, one of a stop, too."""
        stop = threading.Event()

        def watch(progress: ReadingProgress) -> None:
            if stop.is_set():
                raise UsageError(f"{progress.name} was not read to its end")
            if progress.seconds > _SHORT:
                self._owner.post_message(self.Progressed(str(progress)))

        self._stops.append(stop)
        try:
            return await asyncio.to_thread(read, watch)
        finally:
            stop.set()
            self._stops.remove(stop)
            self._owner.post_message(self.Progressed(""))

    def stop(self) -> None:
        """End all of them as soon as they look."""
        for stop in self._stops:
            stop.set()

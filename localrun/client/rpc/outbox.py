"""Replies on their way to whoever asked. Each sending wakes threads of two processes, on cores that steps use."""

import math
import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import BinaryIO

from localrun.base.errors import EngineError
from localrun.client.rpc.codec import WireError
from localrun.client.rpc.wire import Reply, as_failure, merged, pack


class Outbox:
    """Replies that a thread sends at once, and words that go where a step of the engine ends.

    There the engine chooses the next tokens, on one core, while others read what it said; a moment later all cores
    compute the next step, and would wait for them. So the engine's own thread sends what the reader's pipe has room
    for: another one would take turns with it.
    """

    def __init__(self, replies: BinaryIO, leave: Callable[[], None]) -> None:
        """`leave` is called once the other side is gone, or after `close` when all is sent."""
        self._replies, self._leave = replies, leave
        self._changed = threading.Condition()  # held, too, by the engine's thread while it sends
        self._pending: list[Reply] = []  # for the thread
        self._is_sending = self._is_closed = False
        self._words: list[Reply] = []  # that wait for the end of a step
        self._due = math.inf  # when the first of them will have waited for as long as they may
        self._pace, self._ended = math.inf, -math.inf  # seconds of a step, and when the last one ended
        threading.Thread(target=self._send, daemon=True).start()

    def put(self, reply: Reply) -> None:
        """Send at once, after the words that wait; nothing once it is closed."""
        with self._changed:
            if not self._is_closed:
                self._words.append(reply)
                self._hand_over()

    def put_words(self, reply: Reply, seconds: float) -> None:
        """Send with the end of a step, the last one within so many seconds; at once where none is expected by then."""
        if self._pace > seconds:
            self.put(reply)
            return
        with self._changed:
            if not self._is_closed:
                self._words.append(reply)
                self._due = min(self._due, time.monotonic() + seconds)

    def step_ends(self) -> None:
        """Send words that the end of the next step would be too late for. Called by the engine's thread, which never
        waits for the other side."""
        now = time.monotonic()
        self._pace, self._ended = now - self._ended, now
        if not self._words or now + self._pace <= self._due:
            return
        with self._changed:
            if self._pending or self._is_sending or not self._send_at_once():
                self._hand_over()

    def close(self) -> None:
        """Send what was said until now, and end."""
        with self._changed:
            self._is_closed = True
            self._hand_over()

    def _hand_over(self) -> None:
        self._pending += self._words
        self._words.clear()
        self._due = math.inf
        self._changed.notify()

    def _send_at_once(self) -> bool:
        """Send the words, unless that would take waiting."""
        data = _packed(self._words)
        if not _has_room(self._replies, len(data)):
            return False
        with suppress(OSError):  # the thread will find out
            self._replies.write(data)
            self._replies.flush()
        self._words.clear()
        self._due = math.inf
        return True

    def _send(self) -> None:
        is_last = False
        with suppress(OSError):
            while not is_last:
                with self._changed:
                    self._is_sending = False
                    self._changed.wait_for(lambda: self._pending or self._is_closed)
                    said, self._pending = self._pending, []
                    self._is_sending, is_last = True, self._is_closed
                self._replies.write(_packed(said))
                self._replies.flush()
        self._leave()


def _has_room(replies: BinaryIO, n_bytes: int) -> bool:
    """Whether a pipe takes so many bytes without waiting. Nobody can ask one of Windows."""
    if sys.platform == "win32" or n_bytes > select.PIPE_BUF:
        return False
    poll = select.poll()
    poll.register(replies, select.POLLOUT)
    return poll.poll(0) == [(replies.fileno(), select.POLLOUT)]


def _packed(replies: Sequence[Reply]) -> bytes:
    return b"".join(map(_frame, merged(replies)))


def _frame(reply: Reply) -> bytes:
    try:
        return pack(reply)
    except WireError as error:
        failed = EngineError(f"the engine's answer cannot be sent: {error}", "please report this")
        return pack(Reply(reply.number, as_failure(failed)))

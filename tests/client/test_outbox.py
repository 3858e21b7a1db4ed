"""Words of an answer go where a step ends, everything else at once; in order, whoever sends."""

import io
import os
import random
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from localrun_testing.waiting import until

from localrun.base.events import Token
from localrun.client.rpc import outbox
from localrun.client.rpc.codec import WireError
from localrun.client.rpc.outbox import Outbox
from localrun.client.rpc.wire import Events, Progress, Reply, read_messages

LONG = 3600.0  # seconds


class Clock:
    """The time as the outbox sees it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Channel:
    """An outbox and the other end of its pipe, which is read without waiting."""

    def __init__(self) -> None:
        self._reads, writes = os.pipe()
        os.set_blocking(self._reads, False)
        self._writes = os.fdopen(writes, "wb")
        self.has_left = threading.Event()
        self.outbox = Outbox(self._writes, self.has_left.set)
        self._data = b""

    def put_word(self, number: int, seconds: float) -> None:
        self.outbox.put_words(Reply(1, Events((Token(number, "word", "answer"),))), seconds)

    def heard(self) -> list[int]:
        """Words and progress that have come so far, by their numbers."""
        with suppress(BlockingIOError):
            while piece := os.read(self._reads, 1 << 20):
                self._data += piece
        found: list[int] = []
        with suppress(WireError):  # the end of a message is yet to come
            for reply in read_messages(io.BytesIO(self._data), Reply):
                found += numbers(reply)
        return found

    def fill(self) -> int:
        """Leave the pipe without room; how many bytes that took."""
        os.set_blocking(self._writes.fileno(), False)
        n_bytes = 0
        with suppress(BlockingIOError):
            while True:
                n_bytes += os.write(self._writes.fileno(), bytes(4096))
        os.set_blocking(self._writes.fileno(), True)
        return n_bytes

    def drain(self, n_bytes: int) -> None:
        while n_bytes:
            n_bytes -= len(os.read(self._reads, n_bytes))

    def leave(self) -> None:
        """Have the reader be gone."""
        os.close(self._reads)


def numbers(reply: Reply) -> Iterator[int]:
    match reply.answer:
        case Progress(done, _):
            yield done
        case Events(events):
            yield from (event.token_id for event in events if isinstance(event, Token) and event.token_id is not None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(outbox, "time", clock)
    return clock


@pytest.fixture
def channel(clock: Clock) -> Channel:
    """One whose engine computes a step in 20 ms."""
    channel = Channel()
    for _ in range(2):
        clock.now += 0.02
        channel.outbox.step_ends()
    return channel


@pytest.mark.parametrize("within", [0.021, 0.03, 0.05, 0.12])
def test_words_wait_for_the_last_step_that_ends_in_time(channel: Channel, clock: Clock, within: float) -> None:
    came, said = dict[int, float](), dict[int, float]()
    sendings = set[float]()
    for number in range(100):
        said[number] = clock.now
        channel.put_word(number, within)
        clock.now += 0.02
        channel.outbox.step_ends()  # what it sends is here when it returns
        new = channel.heard()[len(came) :]
        came.update(dict.fromkeys(new, clock.now))
        sendings |= {clock.now} if new else set()
    assert list(came) == list(range(len(came)))
    assert all(moment - said[number] <= within for number, moment in came.items())
    together = int(within / 0.02)
    assert len(sendings) == 100 // together, "as many as may wait go together"


def test_words_go_at_once_where_no_step_ends_in_time(channel: Channel, clock: Clock) -> None:
    channel.put_word(1, 0.019)
    until(lambda: channel.heard() == [1])
    clock.now += 5  # of rest
    channel.outbox.step_ends()
    channel.put_word(2, 0.03)
    until(lambda: channel.heard() == [1, 2])


def test_whatever_else_is_said_takes_the_words_along(channel: Channel) -> None:
    channel.put_word(1, LONG)
    channel.outbox.put(Reply(1, Progress(2, 9)))
    until(lambda: channel.heard() == [1, 2])


def test_the_engine_does_not_wait_for_a_reader_that_does_not_read(channel: Channel, clock: Clock) -> None:
    n_bytes = channel.fill()
    for number in range(50):
        channel.put_word(number, 0.03)
        clock.now += 0.02
        channel.outbox.step_ends()  # would not return
    channel.drain(n_bytes)
    until(lambda: channel.heard() == list(range(50)))


def test_words_that_are_too_many_for_the_room_of_a_pipe_all_come(channel: Channel, clock: Clock) -> None:
    for number in range(500):
        channel.put_word(number, LONG)
    clock.now += 2 * LONG
    channel.outbox.step_ends()
    until(lambda: channel.heard() == list(range(500)))


def test_where_nobody_can_ask_for_room_the_thread_sends(
    channel: Channel, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_has_room", lambda replies, n_bytes: False)
    channel.put_word(1, 0.03)
    clock.now += 0.02
    channel.outbox.step_ends()
    until(lambda: channel.heard() == [1])


@pytest.mark.parametrize("seed", range(5))
def test_replies_come_in_the_order_in_which_they_were_said(channel: Channel, clock: Clock, seed: int) -> None:
    chance, is_over = random.Random(seed), threading.Event()

    def compute() -> None:
        while not is_over.is_set():
            clock.now += 0.02
            channel.outbox.step_ends()

    engine = threading.Thread(target=compute)
    engine.start()
    for number in range(300):
        if chance.random() < 0.9:
            channel.put_word(number, chance.choice((0.01, 0.03, 0.12)))
        else:
            channel.outbox.put(Reply(number, Progress(number, 300)))
        if chance.random() < 0.1:
            channel.heard()
    channel.outbox.close()
    until(lambda: channel.heard() == list(range(300)))
    is_over.set()
    engine.join()


def test_closed_it_sends_what_was_said_until_then_and_leaves(channel: Channel, clock: Clock) -> None:
    n_bytes = channel.fill()
    channel.put_word(1, LONG)
    channel.outbox.put(Reply(1, Progress(2, 9)))
    channel.put_word(3, LONG)
    channel.outbox.close()
    channel.put_word(4, 0.03)
    clock.now += 0.02
    channel.outbox.step_ends()
    channel.outbox.put(Reply(1, Progress(5, 9)))
    channel.drain(n_bytes)
    assert channel.has_left.wait(60)
    assert channel.heard() == [1, 2, 3]


def test_without_a_reader_it_leaves_and_the_engine_goes_on(channel: Channel, clock: Clock) -> None:
    channel.leave()
    channel.put_word(1, 0.03)
    clock.now += 0.02
    channel.outbox.step_ends()
    channel.outbox.put(Reply(1, Progress(2, 9)))
    assert channel.has_left.wait(60)

"""The queue of sequences that wait to run, by priority, age and cached prefix. No tensors."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import get_args

from localrun.base.request import Priority
from localrun.engine.generation import GenerationState

CLASSES: tuple[Priority, ...] = get_args(Priority)  # the first goes first
AGING_SECONDS = 30.0  # of waiting, after which a request rises by a class, so that none waits for ever
AHEAD = 16  # of each class are looked at, and brought back from the disk, at a time


def class_of(sequence: GenerationState) -> int:
    """Number of the sequence's class; 0 goes before 1."""
    return CLASSES.index(sequence.priority)


class WaitingLine:
    """Sequences by class. The higher class goes first, and among equals the one with more of its prompt in the cache.

    `cached`: how many of a sequence's tokens, from the first on, are there.
    """

    def __init__(
        self, cached: Callable[[GenerationState], int], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._cached, self._clock = cached, clock
        self._lines: tuple[deque[GenerationState], ...] = tuple(deque() for _ in CLASSES)
        self._since: dict[int, float] = {}  # when each first came here, by its number
        self._shares: dict[int, float] = {}  # of each prompt, as far as they were asked for

    def __len__(self) -> int:
        return sum(map(len, self._lines))

    def __bool__(self) -> bool:
        return any(self._lines)

    def __iter__(self) -> Iterator[GenerationState]:
        for line in self._lines:
            yield from line

    def add(self, sequence: GenerationState) -> None:
        """Add a sequence at the end of its class."""
        self._since[sequence.number] = self._clock()
        self._lines[class_of(sequence)].append(sequence)

    def put_back(self, sequence: GenerationState) -> None:
        """Add a sequence that ran, before the others of its class."""
        self._lines[class_of(sequence)].appendleft(sequence)

    def take(self, sequence: GenerationState) -> None:
        """Remove a sequence that runs; it may come back."""
        line = self._lines[class_of(sequence)]
        if sequence in line:
            line.remove(sequence)

    def raise_class(self, sequence: GenerationState) -> None:
        """Put a sequence into the highest class; if it waits, at the end of those of that class."""
        if sequence.priority == CLASSES[0]:
            return
        is_waiting = sequence in self._lines[class_of(sequence)]
        self.take(sequence)
        sequence.priority = CLASSES[0]
        if is_waiting:
            self._lines[0].append(sequence)

    def forget(self, sequence: GenerationState) -> None:
        """Remove a sequence that has ended."""
        self.take(sequence)
        self._since.pop(sequence.number, None)
        self._shares.pop(sequence.number, None)

    def look_again(self) -> None:
        """The cache has changed: look up again how much of each prompt it holds."""
        self._shares.clear()

    def level(self, sequence: GenerationState) -> int:
        """Class of a sequence, minus its waiting time in units of AGING_SECONDS; the lowest goes first."""
        return class_of(sequence) - int((self._clock() - self._since[sequence.number]) // AGING_SECONDS)

    def front(self) -> list[GenerationState]:
        """The next sequences, in order."""
        front = [sequence for line in self._lines for sequence in islice(line, AHEAD)]
        if len(front) > 1:
            front.sort(key=lambda s: (self.level(s), not s.admitted, -self._share(s), s.number))
        return front

    def _share(self, sequence: GenerationState) -> float:
        if sequence.number not in self._shares:
            self._shares[sequence.number] = self._cached(sequence) / sequence.n_tokens
        return self._shares[sequence.number]

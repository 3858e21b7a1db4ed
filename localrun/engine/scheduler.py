"""What the next step computes: every running decode, and one chunk of one prefill. Ints only, no tensors."""

from collections import deque
from dataclasses import dataclass

from localrun.cache.blocks import OutOfBlocks
from localrun.cache.groups import BLOCK_TOKENS
from localrun.cache.store import CacheStore
from localrun.engine.sequence import Sequence

MAX_CHUNK = 512
MAX_RUNNING = 16
ALONE_SECONDS = 1.0  # a prefill chunk with nobody waiting
SHARED_SECONDS = 0.2  # a prefill chunk while others decode


@dataclass(frozen=True, slots=True)
class Plan:
    """Sequences of a step and how many of their tokens, from n_computed on, it computes."""

    work: tuple[tuple[Sequence, int], ...]

    @property
    def n_rows(self) -> int:
        return sum(n for _, n in self.work)


class Scheduler:
    """First come, first served; when blocks run out the youngest sequence waits again and recomputes later."""

    def __init__(self, store: CacheStore, max_running: int = MAX_RUNNING) -> None:
        self.store = store
        self.max_running = max_running
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.rows_per_second = 256.0

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.running)

    def schedule(self) -> Plan:
        """The next step; empty when nothing can run."""
        self._admit()
        work: list[tuple[Sequence, int]] = []
        for sequence in [s for s in self.running if not s.prefilling]:
            if sequence in self.running and self._make_room(sequence, sequence.n_tokens):
                work.append((sequence, 1))
        work = [(s, n) for s, n in work if s in self.running]
        prefilling = next((s for s in self.running if s.prefilling), None)
        if prefilling is not None:
            n = self._chunk(prefilling, others=bool(work))
            if self._make_room(prefilling, prefilling.n_computed + n):
                work.append((prefilling, n))
        return Plan(tuple((s, n) for s, n in work if s in self.running))

    def observe(self, n_rows: int, seconds: float) -> None:
        """Learn how fast prefill goes, to size the next chunk."""
        if n_rows >= BLOCK_TOKENS and seconds > 0:
            self.rows_per_second = 0.5 * self.rows_per_second + 0.5 * n_rows / seconds

    def finish(self, sequence: Sequence) -> None:
        """Give back what an ended sequence holds; its computed tokens stay in the prefix tree."""
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        if sequence in self.running:
            self.running.remove(sequence)
        self._close(sequence)

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self.max_running:
            sequence = self.waiting[0]
            try:
                lease = self.store.open(sequence.token_ids)
            except OutOfBlocks:
                return
            self.waiting.popleft()
            sequence.lease, sequence.n_computed = lease, lease.n_cached
            if sequence.n_generated == 0:
                sequence.n_cached = lease.n_cached
            self.running.append(sequence)

    def _make_room(self, sequence: Sequence, n_tokens: int) -> bool:
        """Blocks for the first n_tokens, at the cost of younger sequences; False when it has to wait or end."""
        while sequence in self.running and sequence.lease is not None:
            try:
                self.store.extend(sequence.lease, n_tokens)
            except OutOfBlocks:
                if len(self.running) == 1:  # nobody left to take from: the context is full
                    sequence.stop_reason = "length"
                    return False
                self._preempt(self.running[-1])
            else:
                return True
        return False

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._close(sequence)
        sequence.n_computed = 0
        self.waiting.appendleft(sequence)

    def _close(self, sequence: Sequence) -> None:
        if sequence.lease is not None:
            self.store.close(sequence.lease, sequence.token_ids[: sequence.n_computed])
            sequence.lease = None

    def _chunk(self, sequence: Sequence, others: bool) -> int:
        """Rows of the next prefill chunk: whole blocks, as many as fit the time a step may take."""
        seconds = SHARED_SECONDS if others else ALONE_SECONDS
        blocks = max(1, int(self.rows_per_second * seconds) // BLOCK_TOKENS)
        stop = (sequence.n_computed // BLOCK_TOKENS + min(blocks, MAX_CHUNK // BLOCK_TOKENS)) * BLOCK_TOKENS
        return min(stop, sequence.n_tokens) - sequence.n_computed

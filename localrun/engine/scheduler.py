"""What the next step computes: every running decode, and one chunk of one prefill. Ints only, no tensors."""

from collections import deque
from dataclasses import dataclass

from localrun.cache.blocks import OutOfBlocks
from localrun.cache.groups import BLOCK_TOKENS
from localrun.cache.store import CacheStore
from localrun.engine.disk_cache import DiskCache
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
    """First come, first served; when blocks run out the youngest sequence waits again and recomputes later.

    Background sequences run only while there is nothing else, one at a time.
    """

    def __init__(self, store: CacheStore, max_running: int = MAX_RUNNING, disk: DiskCache | None = None) -> None:
        self.store = store
        self.disk = disk
        self.max_running = max_running
        self.waiting: deque[Sequence] = deque()
        self.background: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.rows_per_second = 256.0

    def add(self, sequence: Sequence) -> None:
        (self.background if sequence.background else self.waiting).append(sequence)

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.running or self.background)

    @property
    def in_background(self) -> bool:
        """Nobody waits for what is being computed."""
        return bool(self.running) and all(sequence.background for sequence in self.running)

    def schedule(self) -> Plan:
        """The next step; empty when nothing can run."""
        self._admit()
        work: list[tuple[Sequence, int]] = []
        for sequence in [s for s in self.running if not s.prefilling]:
            if sequence in self.running and self._make_room(sequence, 1):
                work.append((sequence, 1))
        work = [(s, n) for s, n in work if s in self.running]
        prefilling = next((s for s in self.running if s.prefilling), None)
        if prefilling is not None:
            n = self._make_room(prefilling, self._chunk(prefilling, others=bool(work)))
            if n:
                work.append((prefilling, n))
        return Plan(tuple((s, n) for s, n in work if s in self.running))

    def observe(self, n_rows: int, seconds: float) -> None:
        """Learn how fast prefill goes, to size the next chunk."""
        if n_rows >= BLOCK_TOKENS and seconds > 0:
            self.rows_per_second = 0.5 * self.rows_per_second + 0.5 * n_rows / seconds

    def finish(self, sequence: Sequence) -> None:
        """Give back what an ended sequence holds; its computed tokens stay in the prefix tree."""
        self._leave(sequence)
        if sequence.lease is not None:
            self.store.close(sequence.lease, sequence.token_ids[: sequence.n_computed])
            sequence.lease = None

    def abandon(self, sequence: Sequence) -> None:
        """Give back what a failed sequence holds; nothing it computed is kept."""
        self._leave(sequence)
        if sequence.lease is not None:
            self.store.abandon(sequence.lease)
            sequence.lease = None

    def _leave(self, sequence: Sequence) -> None:
        for line in (self.waiting, self.background, self.running):
            if sequence in line:
                line.remove(sequence)

    def _admit(self) -> None:
        if self.waiting:
            for sequence in [s for s in self.running if s.background]:
                self._preempt(sequence)
        line = self.waiting if self.waiting or self.running else self.background
        while line and len(self.running) < (1 if line is self.background else self.max_running):
            if self.disk is not None and not line[0].admitted:
                line[0].restore(self.disk)
            try:
                lease = self.store.open(line[0].token_ids, line[0].n_prompt, line[0].request.chat)
            except OutOfBlocks:
                if self.running:
                    return
                lease = self.store.open_empty(
                    line[0].n_prompt, line[0].request.chat
                )  # no room for a copy: compute it again
            sequence = line.popleft()
            sequence.admit(lease)
            self.running.append(sequence)

    def _make_room(self, sequence: Sequence, n: int) -> int:
        """Blocks for the next n tokens, or for as many as there is room for, at the cost of younger sequences.

        0 when the sequence has to wait or to end.
        """
        while sequence in self.running and sequence.lease is not None:
            try:
                self.store.extend(sequence.lease, sequence.n_computed, sequence.n_computed + n)
            except OutOfBlocks:
                if n > BLOCK_TOKENS:
                    n = max(BLOCK_TOKENS, n // 2 // BLOCK_TOKENS * BLOCK_TOKENS)
                elif len(self.running) == 1:  # nobody left to take from: the context is full
                    sequence.stop_reason = "length"
                    return 0
                else:
                    self._preempt(self.running[-1])
            else:
                return n
        return 0

    def _preempt(self, sequence: Sequence) -> None:
        self.finish(sequence)
        sequence.n_computed = 0
        (self.background if sequence.background else self.waiting).appendleft(sequence)

    def _chunk(self, sequence: Sequence, others: bool) -> int:
        """Rows of the next prefill chunk: whole blocks, as many as fit the time a step may take."""
        seconds = SHARED_SECONDS if others else ALONE_SECONDS
        blocks = max(1, int(self.rows_per_second * seconds) // BLOCK_TOKENS)
        stop = (sequence.n_computed // BLOCK_TOKENS + min(blocks, MAX_CHUNK // BLOCK_TOKENS)) * BLOCK_TOKENS
        return min(stop, sequence.n_tokens) - sequence.n_computed

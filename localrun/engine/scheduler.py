"""Scheduler: the rows of the next step, one for every running decode, and chunks of prompts in those that are left.

Ints only, no tensors.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from localrun.cache.blocks import OutOfBlocks
from localrun.cache.store import CacheStore
from localrun.engine.admission import has_room
from localrun.engine.generation import GenerationState
from localrun.ops.largest_step import LEAST_CHUNK, MAX_ROWS, max_rows
from localrun.storage.disk_cache import DiskCache
from localrun.storage.restore import Restore

ALONE_SECONDS = 1.0  # a prefill chunk with nobody waiting
SHARED_SECONDS = 0.2  # a prefill chunk while others decode
RESTORE_SECONDS = 0.01  # a step may spend on blocks from the disk, while others wait for it
AHEAD = 16  # of those that wait, so many are looked at, and brought back from the disk, at a time
HEADROOM_TOKENS = 256  # that there should be room for beside a new prompt
RETRY_STEPS = 32  # after which one that found no room is tried again though nothing has ended


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Sequences of a step and how many of their tokens, from n_computed on, it computes."""

    work: tuple[tuple[GenerationState, int], ...]

    @property
    def n_rows(self) -> int:
        return sum(n for _, n in self.work)


class Scheduler:
    """Shares the rows of each step among all that run: all decodes in every step, then prompts in turn.

    First come, first served, as far as there is room for all of a prompt; when blocks run out the youngest sequence
    waits again and recomputes later. Background sequences run only while there is nothing else, one at a time. While
    a prompt comes from the disk, others go before it.
    """

    def __init__(
        self,
        store: CacheStore,
        max_running: int = MAX_ROWS - LEAST_CHUNK,
        disk: DiskCache | None = None,
        wake: Callable[[], None] = lambda: None,
        span: int = 0,
    ) -> None:
        """`max_running`: sequences that there is working memory for. `wake` is called from another thread, when there
        is more to do. `span`: tokens of a span of a prompt that are read in bulk, best all at once; 0: none are."""
        self.store = store
        self.disk = disk
        self.wake = wake
        self.max_running = max_running
        self.waiting: deque[GenerationState] = deque()
        self.background: deque[GenerationState] = deque()
        self.running: list[GenerationState] = []
        self.block_tokens = store.block_tokens
        self.span, self.max_rows = span, max_rows(span)
        self.rows_per_second = float(self.block_tokens)  # the first chunk is a block, and tells how fast others are
        self.turn = 0  # of the last chunk; a new prompt comes after whoever waits for this one
        self.retry = 0  # steps until it is worth looking for room again

    def add(self, sequence: GenerationState) -> None:
        (self.background if sequence.background else self.waiting).append(sequence)

    @property
    def busy(self) -> bool:
        """There is something to do now; what is being read from the disk wakes us."""
        lines = (*self.waiting, *(() if self.waiting else self.background))
        return bool(self.running) or any(s.restore is None or s.restore.is_ready for s in lines)

    def schedule(self) -> StepPlan:
        """The next step; empty when nothing can run."""
        self._admit()
        work: list[tuple[GenerationState, int]] = []
        for sequence in [s for s in self.running if not s.prefilling]:
            if self._make_room(sequence, 1):
                work.append((sequence, 1))
        work = [(s, n) for s, n in work if s.cache is not None]  # whoever lost its blocks to an older one waits again
        work += self._chunks(self.max_rows - len(work), SHARED_SECONDS if work else ALONE_SECONDS)
        return StepPlan(tuple((s, n) for s, n in work if s.cache is not None))

    def observe(self, n_rows: int, seconds: float) -> None:
        """Learn how fast prefill goes, to size the next chunk."""
        if n_rows >= self.block_tokens and seconds > 0:
            self.rows_per_second = 0.5 * self.rows_per_second + 0.5 * n_rows / seconds

    def finish(self, sequence: GenerationState) -> None:
        """Give back what an ended sequence holds; its computed tokens stay in the prefix tree."""
        self._leave(sequence)
        if sequence.cache is not None:
            self.store.close(sequence.cache, sequence.keys[: sequence.n_computed])
            sequence.cache = None

    def abandon(self, sequence: GenerationState) -> None:
        """Give back what a failed sequence holds; nothing it computed is kept."""
        self._leave(sequence)
        if sequence.cache is not None:
            self.store.abandon(sequence.cache)
            sequence.cache = None

    def _leave(self, sequence: GenerationState) -> None:
        for line in (self.waiting, self.background, self.running):
            if sequence in line:
                line.remove(sequence)
        if sequence.restore is not None:
            sequence.restore.give_up()
        self.retry = 0

    def _admit(self) -> None:
        if not self.waiting and not self.background:
            return
        ready = [s for s in list(islice(self.waiting, AHEAD)) if self._is_restored(s)]
        if ready:
            for sequence in [s for s in self.running if s.background]:
                self._preempt(sequence)
        elif self.background and not self.waiting and not self.running and self._is_restored(self.background[0]):
            ready = [self.background[0]]
        self.retry = max(0, self.retry - 1)
        for sequence in ready:
            if len(self.running) >= self.max_running or not self._open(sequence):
                return

    def _is_restored(self, sequence: GenerationState) -> bool:
        """Whether what is on disk of it is in memory; else bring some more."""
        if self.disk is None or sequence.admitted:
            return True
        if sequence.restore is None:
            sequence.restore = Restore(self.disk, sequence.keys, self.wake)
        sequence.restore.advance(RESTORE_SECONDS if self.running else ALONE_SECONDS)
        return sequence.restore.is_over

    def _open(self, sequence: GenerationState) -> bool:
        """Let it run, unless it has to wait for room: whoever runs would only push it out again."""
        if self.running:
            if self.retry:
                return False
            caches = [running.cache for running in self.running if running.cache is not None]
            if not has_room(self.store, caches, sequence.keys, MAX_ROWS, self._growth(sequence)):
                self.retry = RETRY_STEPS
                return False
        chat = sequence.request.chat
        try:
            cache = self.store.open(sequence.keys, sequence.n_prompt, chat)
        except OutOfBlocks:
            if self.running:
                return False
            cache = self.store.open_empty(sequence.n_prompt, chat)  # no room for a copy: compute it again
        self._leave(sequence)
        sequence.turn = self.turn + 1
        sequence.admit(cache)
        self.running.append(sequence)
        return True

    def _growth(self, sequence: GenerationState) -> int:
        """Tokens that should find room besides, lest it is pushed out soon. Whoever was pushed out had all its work
        thrown away: it comes back when all that is still to be written fits, or when it is alone."""
        to_come = sum(s.n_to_come for s in (*self.running, sequence))
        return to_come if sequence.admitted else min(to_come, HEADROOM_TOKENS)

    def _make_room(self, sequence: GenerationState, n: int) -> int:
        """Blocks for the next n tokens, or for as many as there is room for, at the cost of younger sequences.

        0 when the sequence has to wait or to end.
        """
        while sequence.cache is not None:
            try:
                self.store.extend(sequence.cache, sequence.n_computed, sequence.n_computed + n)
            except OutOfBlocks:
                if n > self.block_tokens:
                    n = max(self.block_tokens, n // 2 // self.block_tokens * self.block_tokens)
                elif len(self.running) == 1:  # nobody left to take from: the context is full
                    sequence.stop_reason = "length"
                    return 0
                else:
                    self._preempt(self.running[-1])
            else:
                return n
        return 0

    def _preempt(self, sequence: GenerationState) -> None:
        self.finish(sequence)
        sequence.n_computed = 0
        (self.background if sequence.background else self.waiting).appendleft(sequence)

    def _chunks(self, rows: int, seconds: float) -> list[tuple[GenerationState, int]]:
        """At most `rows` rows of prompts, and no more than fit the time: shared by all that are being read.

        The shortest go first, and in turns where there are fewer blocks than prompts.
        """
        prefills = [s for s in self.running if s.prefilling]
        if not prefills:
            return []
        prefills.sort(key=lambda s: (s.turn, s.n_tokens - s.n_computed))
        rows = min(rows, max(self.block_tokens, int(self.rows_per_second * seconds)))
        work = []
        for index, sequence in enumerate(prefills):
            share = max(self.span or self.block_tokens, rows // (len(prefills) - index))
            wish = self._chunk(sequence, min(rows, share))
            n = self._make_room(sequence, wish) if wish else 0
            if n:
                work.append((sequence, n))
                self.turn, sequence.turn = sequence.turn, sequence.turn + 1
                rows -= n
        return work

    def _chunk(self, sequence: GenerationState, rows: int) -> int:
        """Tokens of a prompt that so many rows compute, up to an end: its own, of a span or block; 0: none."""
        end = sequence.n_computed + rows
        if end >= sequence.n_tokens:
            return sequence.n_tokens - sequence.n_computed
        if sequence.n_computed < sequence.n_bulk and (spans := end // self.span * self.span) > sequence.n_computed:
            return spans - sequence.n_computed
        return max(0, end // self.block_tokens * self.block_tokens - sequence.n_computed)

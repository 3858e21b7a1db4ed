"""Scheduler: the rows of the next step, one for each running decode, the rest for chunks of prompts.

Ints only, no tensors.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager

from localrun.backends.executor import Executor
from localrun.cache.blocks import OutOfBlocks
from localrun.cache.store import CacheStore
from localrun.engine.admission import has_room
from localrun.engine.begun_ahead import reserve_ahead
from localrun.engine.generation import GenerationState
from localrun.engine.readiness import Readiness
from localrun.engine.shared_prefix import SharedPrefixes
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.step_cost import ALONE_SECONDS, LEAST_ROWS, StepCost
from localrun.engine.step_plan import StepPlan, StepWork, has_place, placed, scorable
from localrun.engine.waiting_line import WaitingLine, class_of
from localrun.ops.largest_step import LEAST_CHUNK, MAX_ROWS, SCORED_ROWS, max_rows
from localrun.storage.disk_cache import DiskCache

RESTORE_SECONDS = 0.01  # a step may spend on blocks from the disk, while others wait for it
HEADROOM_TOKENS = 256  # of free room required beside a new prompt
RETRY_STEPS = 32  # after which a sequence without room is tried again though none has ended
FORCED_ROWS = 31  # of one answer in a step, beside that of a chosen token
TURNS = (1, 4, 16)  # between two chunks of a prompt, by its class, where there are fewer chunks than prompts


class Scheduler:
    """Shares the rows of each step among the running sequences: all decodes in every step, then prompts in turn.

    The higher class goes first, and within a class the one with most of its prompt in the cache, as far as there is
    room for a whole prompt; a prompt that begins like one being read waits for that. Running sequences are not
    preempted for waiting ones; when blocks run out, the youngest of the lowest class waits again and recomputes later.
    Warm-ups run only while there is nothing else, one at a time. While a prompt comes from disk, others go before it.
    """

    def __init__(
        self,
        store: CacheStore,
        max_running: int = MAX_ROWS - LEAST_CHUNK,
        disk: DiskCache | None = None,
        wake: Callable[[], None] = lambda: None,
        executor: Executor | None = None,
        clock: Callable[[], float] = time.perf_counter,
        speculation: Speculation | None = None,
    ) -> None:
        """`max_running`: sequences that there is working memory for. `wake` is called from another thread, when there
        is more to do. `executor`: of the steps, which may read spans of prompts in bulk, best all at once, and
        begin steps ahead; None: one that does not. `clock`: seconds, for those that wait. `speculation`: drafts
        tokens; None: nothing does."""
        self.store = store
        self.disk = disk
        self.speculation = speculation
        self.readiness = Readiness(store, disk, wake)
        self.max_running = max_running
        self.waiting = WaitingLine(lambda sequence: store.n_known(sequence.reusable), clock)
        self.warm_ups: deque[GenerationState] = deque()
        self.running: list[GenerationState] = []
        self.prefixes = SharedPrefixes(store)
        self.awaited: dict[int, int] = {}  # the class, or higher, of those that wait for a sequence, by its number
        self.cost = StepCost(store.block_tokens)
        self.block_tokens = store.block_tokens
        self.span, self.runs_ahead = (executor.bulk_span, executor.runs_ahead) if executor else (0, False)
        self.max_rows = max_rows(self.span)
        self.turn = 0  # of the last chunk; a new prompt comes after those that already wait
        self.retry = 0  # steps until it is worth looking for room again

    def add(self, sequence: GenerationState) -> None:
        (self.warm_ups.append if sequence.is_warm_up else self.waiting.add)(sequence)

    @property
    def busy(self) -> bool:
        """Whether there is work now; reads from the disk and constraints wake the engine when they are done."""
        for sequence in self.running:
            if sequence.n_uncomputed:
                return True
        return any(map(self.readiness.can_go_on, self.waiting or self.warm_ups))

    def schedule(self) -> StepPlan:
        """The next step; empty when nothing can run."""
        self._admit()
        decoding: list[StepWork] = []
        scored = SCORED_ROWS  # that are left to those whose logprobs are wanted
        decodes = [s for s in self.running if s.n_uncomputed and not s.prefilling]
        room = self.max_rows - len(decodes)
        for sequence in decodes:
            wish = min(sequence.n_uncomputed, 1 + min(room, FORCED_ROWS))
            if scorable(sequence, 1, scored) and (n := self._make_room(sequence, wish)):
                decoding.append(work := StepWork(sequence, n, scored=sequence.scored(n)))
                scored -= len(work.scored)
                room -= n - 1
        planned = placed(decoding)
        if len(planned) < len(self.running):
            planned = placed([*planned, *self._chunks(planned, scored)])
        return StepPlan(tuple(planned), self.runs_ahead and reserve_ahead(self.store, planned))

    def drafted(self, plan: StepPlan, lock: AbstractContextManager[object]) -> StepPlan:
        """The same step with drafts to verify. A program may run for these; `lock` is held while they get blocks."""
        if self.speculation is None:
            return plan
        if not any(drafts := self.speculation.propose(plan.work)):
            return plan
        with lock:
            return StepPlan(tuple(self._with_draft(*both) for both in zip(plan.work, drafts, strict=True)))

    def observe(self, plan: StepPlan, seconds: float) -> None:
        """Record what a step has taken."""
        if not any(work.drafts for work in plan.work):
            n_read = sum([work.n for work in plan.work if work.n > 1])
            self.cost.observe(plan.n_rows - n_read, n_read, seconds)
        if self.speculation is not None:
            self.speculation.observe(plan, seconds)

    def follow(self, plan: StepPlan, executor: Executor) -> None:
        """Keep what drafts need of a step whose tokens are chosen."""
        if self.speculation is not None:
            self.speculation.follow(plan, executor)

    def close(self) -> None:
        """Give back the memory of what drafts."""
        if self.speculation is not None:
            self.speculation.close()

    def settle(self, work: StepWork, n_accepted: int) -> None:
        """Record how many drafts an answer went on with."""
        if self.speculation is not None:
            self.speculation.settle(work, n_accepted)

    def finish(self, sequence: GenerationState) -> None:
        """Release an ended sequence; its computed tokens stay in the prefix tree."""
        self._leave(sequence)
        self._give_back(sequence)

    def abandon(self, sequence: GenerationState) -> None:
        """Release a failed sequence; nothing that it computed is kept."""
        self._leave(sequence)
        if sequence.cache is not None:
            self.store.abandon(sequence.cache)
            sequence.cache = None

    def _give_back(self, sequence: GenerationState) -> None:
        if sequence.cache is not None:
            self.store.close(sequence.cache, sequence.keys[: sequence.n_computed])
            sequence.cache = None

    def _leave(self, sequence: GenerationState) -> None:
        for line in (self.warm_ups, self.running):
            if sequence in line:
                line.remove(sequence)
        self.waiting.forget(sequence)
        self.waiting.look_again()
        self.prefixes.forget(sequence)
        if self.speculation is not None:
            self.speculation.forget(sequence)
        self.readiness.give_up(sequence)
        self.retry = 0

    def _admit(self) -> None:
        self.awaited.clear()
        if not self.waiting and not self.warm_ups:
            return
        ready = [s for s in self.waiting.front() if self._is_ready(s)]
        if ready:
            for sequence in [s for s in self.running if s.is_warm_up]:
                self._preempt(sequence)
        elif self.warm_ups and not self.waiting and not self.running and self._is_ready(self.warm_ups[0]):
            ready = [self.warm_ups[0]]
        self.retry = max(0, self.retry - 1)
        reading = [s for s in self.running if s.n_computed < s.n_prompt]
        is_full = False
        for sequence in ready:
            if (leader := self.prefixes.leader(sequence, reading)) is not None:
                self.awaited[leader.number] = min(class_of(sequence), self.awaited.get(leader.number, class_of(leader)))
            elif not is_full:
                is_full = not has_place(self.max_running, self.running, sequence) or not self._open(sequence)
                reading += [] if is_full else [sequence]

    def _is_ready(self, sequence: GenerationState) -> bool:
        return self.readiness.is_ready(sequence, RESTORE_SECONDS if self.running else ALONE_SECONDS)

    def _open(self, sequence: GenerationState) -> bool:
        """Admit a sequence, unless there is no room: the running ones would only preempt it again."""
        if self.running:
            if self.retry:
                return False
            caches = [running.cache for running in self.running if running.cache is not None]
            if not has_room(self.store, caches, sequence.n_tokens, sequence.reusable, MAX_ROWS, self._growth(sequence)):
                self.retry = RETRY_STEPS
                return False
        chat = sequence.request.chat
        try:
            cache = self.store.open(sequence.reusable, sequence.n_prompt, chat)
        except OutOfBlocks:
            if self.running:
                return False
            cache = self.store.open_empty(sequence.n_prompt, chat)  # no room for a copy: compute it again
        if sequence.images is not None and sequence.images.missing(cache.reuse.start):  # evicted for room just now
            self.store.abandon(cache)
            return True
        if sequence.is_warm_up:
            self.warm_ups.remove(sequence)
        else:
            self.waiting.take(sequence)
        sequence.turn = self.turn + 1
        sequence.admit(cache)
        self.running.append(sequence)
        return True

    def _growth(self, sequence: GenerationState) -> int:
        """Tokens there should be room for on top, so that it is not preempted soon. A preempted sequence lost all its
        work: it comes back when everything still to be written fits, or when it is alone."""
        to_come = sum(s.n_to_come for s in (*self.running, sequence))
        return to_come if sequence.admitted else min(to_come, HEADROOM_TOKENS)

    def _make_room(self, sequence: GenerationState, n: int) -> int:
        """Blocks for the next n tokens, or as many as find room, at the cost of lower classes and younger sequences.

        0 when the sequence has to wait or to end.
        """
        while sequence.cache is not None:
            try:
                self.store.extend(sequence.cache, sequence.n_computed, sequence.n_computed + n)
            except OutOfBlocks:
                if n > self.block_tokens and (fewer := self._fewer(sequence, n)):
                    n = fewer
                elif len(self.running) == 1:  # no sequence left to preempt: the context is full
                    sequence.stop_reason = "length"
                    return 0
                else:
                    self._preempt(max(reversed(self.running), key=class_of))
            else:
                return n
        return 0

    def _fewer(self, sequence: GenerationState, n: int) -> int:
        """About half of `n` tokens, whole blocks that no image is cut by; 0 where there are none."""
        half = max(self.block_tokens, n // 2 // self.block_tokens * self.block_tokens)
        return sequence.whole(half, n - 1)

    def _with_draft(self, work: StepWork, drafts: tuple[int, ...]) -> StepWork:
        """Work with its drafts, where there is room: nothing gives way to them."""
        cache, start = work.sequence.cache, work.sequence.n_computed
        assert cache is not None
        try:
            if drafts:
                self.store.extend(cache, start, start + work.n + len(drafts))
            return work._replace(drafts=drafts, scored=work.sequence.scored(work.n + len(drafts)))
        except OutOfBlocks:
            self.store.extend(cache, start, start + work.n)
            return work

    def _preempt(self, sequence: GenerationState) -> None:
        self._give_back(sequence)
        self.running.remove(sequence)
        self.retry, sequence.n_computed, sequence.n_behind = 0, 0, 0
        (self.warm_ups.appendleft if sequence.is_warm_up else self.waiting.put_back)(sequence)

    def _chunks(self, decoding: list[StepWork], scored: int) -> list[StepWork]:
        """Rows of prompts, no more than go beside these decodes: shared by all that are being read. After at most
        `scored` of them logprobs are wanted.

        In turns where there are fewer chunks than prompts, the higher classes more often, and the shortest first.
        """
        prefills = [s for s in self.running if s.prefilling]
        if not prefills:
            return []
        room = self.max_rows - sum([work.n for work in decoding])
        is_watched = any(work.sequence.priority == "interactive" for work in decoding)
        rows = min(room, self.cost.rows_beside_watched() if is_watched else self.cost.rows(bool(decoding)))
        least = LEAST_ROWS if is_watched else self.block_tokens
        prefills.sort(key=lambda s: (s.turn, s.n_tokens - s.n_computed))
        work: list[StepWork] = []
        for index, sequence in enumerate(prefills):
            share = max(self.span or self.block_tokens, rows // (len(prefills) - index))
            most = scorable(sequence, min(rows, share), scored)
            wish = sequence.whole(self._chunk(sequence, most, least, room), room) if most > 0 else 0
            if wish and (n := self._make_room(sequence, wish)):
                work.append(StepWork(sequence, n, scored=sequence.scored(n)))
                self.turn = sequence.turn
                sequence.turn += TURNS[self.awaited.get(sequence.number, class_of(sequence))]
                rows, room, scored = rows - n, room - n, scored - len(work[-1].scored)
        return work

    def _chunk(self, sequence: GenerationState, rows: int, least: int, room: int) -> int:
        """Tokens of a prompt that `rows` rows compute, up to the end of it, a span or a block; at least `least`,
        else 0. A span is read whole where there is room, as a part of it takes as long."""
        is_bulk = sequence.n_computed < sequence.n_bulk
        end = sequence.n_computed + (min(room, max(rows, self.span)) if is_bulk else rows)
        if end >= sequence.n_tokens:
            return sequence.n_tokens - sequence.n_computed
        if is_bulk and (spans := end // self.span * self.span) > sequence.n_computed:
            return spans - sequence.n_computed
        blocks = end // self.block_tokens * self.block_tokens - sequence.n_computed
        return blocks if blocks > 0 else rows if rows >= least else 0

"""All generations under way: choose their next tokens from the logits of a step, and send the events."""

import time
from collections.abc import Iterable, Mapping, Sequence

from localrun.base.errors import ModelFileError
from localrun.base.events import Loop, Prefill, PromptLogprobs, StopReason, TokenLogprob
from localrun.engine.constrained import Constrained
from localrun.engine.generation import GenerationState
from localrun.engine.handle import Finished, GenerationHandle, NewToken, as_localrun_error
from localrun.engine.logprobs import token_logprob, token_logprobs
from localrun.engine.next_tokens import sample_next
from localrun.engine.scheduler import Scheduler, StepPlan
from localrun.engine.view import StoreView, block_states, cache_bytes, used_bytes, view_store
from localrun.ops.interface import Logits

FORCED_SECONDS = 0.001  # that a step may wait for forced tokens


class Generations:
    """Handles by number of their sequences. Not locked: the engine sees to that."""

    def __init__(self, scheduler: Scheduler, block_sizes: Sequence[int], ctx: int) -> None:
        """`block_sizes`: bytes of a block of every pool."""
        self.scheduler, self.store = scheduler, scheduler.store
        self.block_sizes, self.ctx = block_sizes, ctx
        self.handles: dict[int, GenerationHandle] = {}
        self.late: dict[int, tuple[GenerationState, Logits]] = {}  # whose constraint was not ready when its logits were
        self.last: GenerationState | None = None  # the latest that was waited for
        self.last_states: tuple[str, ...] = ("",) * len(self.store.groups)  # of its blocks, once it has ended

    @property
    def sequences(self) -> list[GenerationState]:
        return [handle.sequence for handle in self.handles.values()]

    @property
    def has_ended(self) -> bool:
        """Whether the end of some is about to be reported."""
        return any(sequence.stop_reason is not None for sequence in self.sequences)

    def add(self, handle: GenerationHandle) -> None:
        handle.sequence.figures.n_ahead = sum(not other.is_warm_up for other in self.sequences)
        self.handles[handle.sequence.number] = handle
        self.scheduler.add(handle.sequence)

    def view(self) -> StoreView:
        """Contents of the cache now."""
        if self.last is None:
            return view_store(self.store, self.block_sizes, 0, self.last_states, 0)
        states, n_bytes = self.last_states, self.last.figures.kv_bytes
        if self.last.cache is not None:
            states, n_bytes = self._states(self.last), cache_bytes(self.last.cache, self.block_sizes)
        return view_store(self.store, self.block_sizes, self.last.n_computed, states, n_bytes)

    def announce(self) -> None:
        """Send the cached token counts of newly admitted sequences, before anything is computed."""
        for sequence in self.scheduler.running:
            handle = self.handles[sequence.number]
            if not handle.announced:
                handle.announced = True
                self._tell_progress(sequence, sequence.figures.n_cached)
                self.last = self.last if sequence.is_warm_up else sequence
                if sequence.request.prompt_logprobs is not None:
                    handle.put(PromptLogprobs((TokenLogprob(sequence.request.prompt[0], None),)))

    def take(self, plan: StepPlan, logits: Logits, seconds: float) -> None:
        """Take the logits of a step; an error with one row ends that generation alone."""
        n_read = sum(n for _, n in plan.work if n > 1)
        self.scheduler.cost.observe(plan.n_rows - n_read, n_read, seconds)
        ended: list[tuple[int, GenerationState]] = []  # rows after which there is a token to choose
        raw_rows: dict[int, int] = {}  # the same as the model gives them, by number of the sequence
        n_rows = len(plan.work)
        for row, (sequence, n) in enumerate(plan.work):
            positions = sequence.scored(n)
            scored = range(n_rows, n_rows + len(positions))
            n_rows = scored.stop
            try:
                if not all(bool(logits.finite[each]) for each in (row, *scored)):
                    raise ModelFileError("NONFINITE", "the model computed values that are not numbers", path="")
                sequence.figures.n_beside += plan.n_rows - n
                self._commit(sequence, n, seconds)
                self._tell_prompt_logprobs(sequence, logits, scored, positions)
                raw_rows[sequence.number] = scored.stop - 1
            except Exception as error:
                self.fail([sequence], error)
            else:
                if sequence.n_computed == sequence.n_tokens:
                    ended.append((row, sequence))
        self._choose(logits, [one for one in ended if self._is_ready(logits, *one, raw_rows)], raw_rows)

    def _is_ready(self, logits: Logits, row: int, sequence: GenerationState, raw_rows: Mapping[int, int]) -> bool:
        """Whether the next token can be chosen; else the logits are kept, and only this one waits."""
        constraint = sequence.constraint
        if constraint is None or constraint.can_choose():
            return True
        if constraint.skips and constraint.forced is not None:  # the token is fixed, whatever the logits are
            return False
        rows = [row] if sequence.request.logprobs is None else [row, raw_rows[sequence.number]]
        self.late[sequence.number] = sequence, logits.copied(rows)
        return False

    def choose_late(self) -> None:
        """Choose the next tokens of those whose constraint was late, and is ready now."""
        for number, (sequence, logits) in list(self.late.items()):
            if sequence.cache is None or sequence.n_uncomputed:  # it goes on already, or has to compute them again
                del self.late[number]
            elif sequence.constraint is None or sequence.constraint.can_choose():
                del self.late[number]
                self._choose(logits, [(0, sequence)], {number: 1})

    def wait_for_forced(self) -> None:
        """Give constraints a moment to compute the tokens after the newest ones: too short to matter."""
        latest = time.perf_counter() + FORCED_SECONDS
        for sequence in self.scheduler.running:
            if sequence.constraint is not None:
                sequence.constraint.wait(max(0.0, latest - time.perf_counter()))

    def take_forced(self) -> None:
        """Append all forced tokens, for the next step to compute at once."""
        for sequence in list(self.scheduler.running):
            if sequence.constraint is not None and sequence.constraint.skips:
                self._take_forced(sequence, sequence.constraint)

    def _take_forced(self, sequence: GenerationState, constraint: Constrained) -> None:
        if sequence.n_computed < sequence.n_prompt or sequence.prefilling:
            return
        n_before = sequence.n_tokens
        while sequence.stop_reason is None and (token := constraint.forced) is not None:
            self._go_on(sequence, token, None)
        if sequence.n_tokens > n_before:
            sequence.n_forced = sequence.n_tokens - n_before

    @property
    def deadline(self) -> float | None:
        """The earliest deadline, on the clock of time.perf_counter."""
        return min((s.request.deadline for s in self.sequences if s.request.deadline is not None), default=None)

    def drop_ended(self) -> None:
        """End those that were cancelled or are past their deadline."""
        now = time.perf_counter()
        for sequence in self.sequences:
            if sequence.cancelled.is_set():
                self._finish(sequence, "cancelled")
            elif sequence.request.deadline is not None and now >= sequence.request.deadline:
                self._finish(sequence, "length")

    def finish_ended(self) -> None:
        for sequence in self.sequences:
            if sequence.stop_reason is not None:
                self._finish(sequence, sequence.stop_reason)

    def cancel_all(self) -> None:
        for sequence in self.sequences:
            self._finish(sequence, "cancelled")

    def fail(self, sequences: Iterable[GenerationState], error: Exception) -> None:
        """End these with an error; nothing they computed is kept."""
        for sequence in sequences:
            handle = self.handles.pop(sequence.number)
            self.late.pop(sequence.number, None)
            try:
                self.scheduler.abandon(sequence)
            finally:
                handle.put(as_localrun_error(error))

    def _commit(self, sequence: GenerationState, n: int, seconds: float) -> None:
        """Count the next n tokens of a sequence as computed."""
        prompt_left = sequence.n_prompt - sequence.n_computed
        sequence.n_computed += n
        assert sequence.cache is not None
        self.store.commit(sequence.cache, sequence.keys, sequence.n_computed)
        if prompt_left > 0:
            sequence.figures.prefill_seconds += seconds
            sequence.figures.prefill_rows += n
            self._tell_progress(sequence, min(sequence.n_computed, sequence.n_prompt))

    def _tell_prompt_logprobs(
        self, sequence: GenerationState, logits: Logits, rows: Sequence[int], positions: range
    ) -> None:
        """Send the prompt tokens after `positions` with their logprobs; `rows`: the logits there."""
        if not positions:
            return
        n_top, prompt = sequence.request.prompt_logprobs, sequence.request.prompt
        after = prompt[positions.start + 1 : positions.stop + 1]
        if n_top is not None and after:
            self.handles[sequence.number].put(PromptLogprobs(token_logprobs(logits, rows, after, n_top)))
        sequence.n_scored = positions.stop

    def _choose(
        self, logits: Logits, ended: Sequence[tuple[int, GenerationState]], raw_rows: Mapping[int, int]
    ) -> None:
        """Choose the next tokens for these rows: all at once, or one by one where that fails."""
        try:
            tokens = sample_next(logits, ended)
        except Exception as error:
            for one in ended if len(ended) > 1 else ():
                self._choose(logits, [one], raw_rows)
            if len(ended) == 1:
                self.fail([ended[0][1]], error)
            return
        for (_, sequence), token in zip(ended, tokens, strict=True):
            try:
                wanted = sequence.request.logprobs
                logprob = None if wanted is None else token_logprob(logits, raw_rows[sequence.number], token, wanted)
                self._go_on(sequence, token, logprob)
            except Exception as error:
                self.fail([sequence], error)

    def _go_on(self, sequence: GenerationState, token_id: int, logprob: TokenLogprob | None) -> None:
        """Take the next token, or end."""
        if not sequence.request.max_tokens:
            sequence.stop_reason = "length"
            return
        handle = self.handles[sequence.number]
        n_before, period_before = sequence.n_tokens, sequence.loop_period
        sequence.append(token_id, time.perf_counter())
        if sequence.n_tokens > n_before:
            handle.put(NewToken(token_id, logprob))
        elif logprob is not None:
            handle.put(NewToken(token_id, logprob, ends=True))
        if sequence.loop_period != period_before:
            handle.put(Loop(sequence.loop_period))
        if sequence.stop_reason is None and sequence.n_tokens >= self.ctx and not sequence.request.rolls:
            sequence.stop_reason = "length"
        if sequence.constraint is not None and sequence.stop_reason is None:
            sequence.constraint.take(token_id)

    def _finish(self, sequence: GenerationState, reason: StopReason) -> None:
        """Free its blocks, and send its end."""
        sequence.stop_reason = reason
        self.late.pop(sequence.number, None)
        sequence.figures.kv_bytes = cache_bytes(sequence.cache, self.block_sizes)
        if sequence is self.last:
            self.last_states = self._states(sequence)
        self.scheduler.finish(sequence)
        sequence.figures.kept_kv_bytes = max(0, used_bytes(self.store, self.block_sizes) - sequence.figures.kv_bytes)
        self.handles.pop(sequence.number).put(Finished(sequence))

    def _states(self, sequence: GenerationState) -> tuple[str, ...]:
        disk = self.scheduler.disk
        return block_states(self.store, sequence, () if disk is None else disk.restored)

    def _tell_progress(self, sequence: GenerationState, done: int) -> None:
        figures = sequence.figures
        self.handles[sequence.number].put(Prefill(done, figures.n_cached, sequence.n_prompt, figures.note))

"""All generations under way: choose their next tokens from the logits of a step, and send the events."""

import time
from collections.abc import Iterable, Sequence
from itertools import takewhile

from localrun.base.events import Loop, Prefill, PromptLogprobs, StopReason, TokenLogprob
from localrun.engine.constrained import Constrained
from localrun.engine.generation import GenerationState
from localrun.engine.handle import Finished, GenerationHandle, NewToken, as_localrun_error
from localrun.engine.late_logits import LateLogits
from localrun.engine.logprobs import token_logprob, token_logprobs
from localrun.engine.next_tokens import EndedWork, NextRow, next_rows, not_finite, sample_next
from localrun.engine.scheduler import Scheduler
from localrun.engine.step_plan import LogitsRows, StepPlan, StepWork
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
        self.late = LateLogits()
        self.last: GenerationState | None = None  # the latest that was waited for
        self.last_states: tuple[str, ...] = ("",) * len(self.store.groups)  # of its blocks, once it has ended

    @property
    def sequences(self) -> list[GenerationState]:
        return [handle.sequence for handle in self.handles.values()]

    @property
    def ended(self) -> list[GenerationState]:
        """Generations whose end is about to be reported."""
        return [handle.sequence for handle in self.handles.values() if handle.sequence.stop_reason is not None]

    @property
    def constrained(self) -> list[GenerationState]:
        """Generations held to a constraint, for which they may wait and which may force tokens."""
        return [handle.sequence for handle in self.handles.values() if handle.sequence.constraint is not None]

    def add(self, handle: GenerationHandle) -> None:
        handle.sequence.figures.n_ahead = sum(not other.is_warm_up for other in self.sequences)
        handle.sequence.tell = handle.put
        self.handles[handle.sequence.number] = handle
        self.scheduler.add(handle.sequence)

    def view(self) -> StoreView:
        """Contents of the cache now."""
        if self.last is None:
            return view_store(self.store, self.block_sizes, 0, self.last_states, 0)
        states, n_bytes = self.last_states, self.last.figures.kv_bytes
        if self.last.cache is not None:
            states, n_bytes = self._states(self.last), cache_bytes(self.store, self.last, self.block_sizes)
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
        self.scheduler.observe(plan, seconds)
        ended, n_rows = [], plan.n_rows
        for work, rows in zip(plan.work, plan.logits_rows(), strict=True):
            self.late.forget(work.sequence)  # a forced token has gone past the row that waited
            try:
                if one := self._take_rows(work, logits, rows, seconds):
                    ended.append(one)
                work.sequence.figures.n_beside += n_rows - work.n_rows
            except Exception as error:
                self.fail([work.sequence], error)
        ready = [one for one in ended if self._is_ready(logits, one)]
        self._choose(logits, [one for one in ready if not one.is_stepwise])
        for one in [one for one in ready if one.is_stepwise]:
            self._choose_stepwise(logits, one)

    def _take_rows(self, work: StepWork, logits: Logits, rows: LogitsRows, seconds: float) -> EndedWork | None:
        """Take what was computed of one sequence -> what to choose its next tokens from, if that is next. Rows after
        drafts may decide nothing: that they are not finite is no error yet."""
        sequence = work.sequence
        positions = sequence.scored(work.n) if work.drafts else work.scored
        scored = rows.scored[: len(positions)]
        if not all(map(logits.finite.__getitem__, (rows.chosen[0], *scored))):
            raise not_finite()
        ended = None
        if work.ends:
            finite = [*takewhile(lambda row: bool(logits.finite[row]), rows.chosen)]
            ended = EndedWork(work, finite, rows.scored[-len(rows.chosen) :])
        if not work.drafts:
            self._commit(sequence, work.n, seconds)
        if positions:
            self._tell_prompt_logprobs(sequence, logits, scored, positions)
        return ended

    def _is_ready(self, logits: Logits, ended: EndedWork) -> bool:
        """Whether the next token can be chosen; else the logits are kept, and only this one waits."""
        constraint = ended.work.sequence.constraint
        if constraint is None or constraint.can_choose():
            return True
        if not (constraint.skips and constraint.forced is not None):  # the token is fixed, whatever the logits are
            self.late.keep(logits, ended, 0)
        if ended.work.drafts:
            self._commit_accepted(ended.work, 0)
        return False

    def choose_late(self) -> None:
        """Choose the next tokens of those whose constraint was late, and is ready now."""
        for logits, ended in self.late.take_ready():
            self._choose(logits, [ended])

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
            sequence.n_behind = sequence.n_uncomputed - 1

    @property
    def deadline(self) -> float | None:
        """The earliest deadline, on the clock of time.perf_counter."""
        return min((s.request.deadline for s in self.sequences if s.request.deadline is not None), default=None)

    def drop_ended(self) -> None:
        """End those cancelled, past their deadline or without their images; raise those that are to go first."""
        for sequence in self.sequences:
            if sequence.raised.is_set():
                self.scheduler.waiting.raise_class(sequence)
            if sequence.cancelled.is_set():
                self._finish(sequence, "cancelled")
            elif sequence.encoding is not None and sequence.encoding.error is not None:
                self.fail([sequence], sequence.encoding.error)
            elif sequence.request.deadline is not None and time.perf_counter() >= sequence.request.deadline:
                self._finish(sequence, "length")

    def finish_ended(self) -> None:
        for sequence in self.ended:
            assert sequence.stop_reason is not None
            self._finish(sequence, sequence.stop_reason)

    def cancel_all(self) -> None:
        for sequence in self.sequences:
            self._finish(sequence, "cancelled")

    def fail(self, sequences: Iterable[GenerationState], error: Exception) -> None:
        """End these with an error; nothing they computed is kept."""
        for sequence in sequences:
            handle = self.handles.pop(sequence.number)
            self.late.forget(sequence)
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

    def _commit_accepted(self, work: StepWork, n_accepted: int) -> None:
        """Count work as computed with the drafts that the answer went on with; the others leave no trace. A state, of
        which no step can take a part, is that from before: the tokens since are computed again with the next one."""
        sequence = work.sequence
        assert sequence.cache is not None
        n_computed = sequence.n_computed + work.n + n_accepted
        sequence.n_computed = self.store.commit(sequence.cache, sequence.keys, n_computed)
        sequence.n_behind = n_computed - sequence.n_computed
        self.scheduler.settle(work, n_accepted)

    def _tell_prompt_logprobs(
        self, sequence: GenerationState, logits: Logits, rows: Sequence[int], positions: range
    ) -> None:
        """Send the prompt tokens after `positions` with their logprobs; `rows`: the logits there."""
        n_top, prompt = sequence.request.prompt_logprobs, sequence.request.prompt
        after = prompt[positions.start + 1 : positions.stop + 1]
        if n_top is not None and after:
            self.handles[sequence.number].put(PromptLogprobs(token_logprobs(logits, rows, after, n_top)))
        sequence.n_scored = min(positions.stop, sequence.n_tokens - 1)  # a row whose token is late may come again

    def _choose(self, logits: Logits, ended: Sequence[EndedWork]) -> None:
        """Choose the next tokens for these rows: all at once, or one sequence at a time where that fails."""
        try:
            tokens = iter(sample_next(logits, next_rows(ended)))
        except Exception as error:
            for one in ended if len(ended) > 1 else ():
                self._choose(logits, [one])
            if len(ended) == 1:
                self.fail([ended[0].work.sequence], error)
            return
        for one in ended:
            chosen = [next(tokens) for _ in one.rows]
            try:
                self._take_chosen(logits, one, chosen)
            except Exception as error:
                self.fail([one.work.sequence], error)

    def _choose_stepwise(self, logits: Logits, ended: EndedWork) -> None:
        """Choose the next tokens of one sequence, each when its constraint knows of the one before."""
        sequence, constraint = ended.work.sequence, ended.work.sequence.constraint
        try:
            for n_accepted, row in enumerate(ended.rows):
                if n_accepted and constraint is not None and not constraint.can_choose_soon():
                    self.late.keep(logits, ended, n_accepted)
                    break
                [token] = sample_next(logits, [NextRow(row, sequence)])
                if not self._is_confirmed(logits, ended, n_accepted, token):
                    break
            else:
                raise not_finite()
            self._commit_accepted(ended.work, n_accepted)
        except Exception as error:
            self.fail([sequence], error)

    def _take_chosen(self, logits: Logits, ended: EndedWork, tokens: Sequence[int]) -> None:
        """Go on with the tokens that were chosen, as long as the one before was drafted."""
        for n_accepted, token in enumerate(tokens):
            if not self._is_confirmed(logits, ended, n_accepted, token):
                break
        else:  # the row after the last of them is not finite
            raise not_finite()
        if ended.work.drafts:
            self._commit_accepted(ended.work, n_accepted)

    def _is_confirmed(self, logits: Logits, ended: EndedWork, n_accepted: int, token: int) -> bool:
        """Go on with the token after `n_accepted` drafts; whether it was drafted, too, so that the next row counts."""
        work, wanted = ended.work, ended.work.sequence.request.logprobs
        logprob = None if wanted is None else token_logprob(logits, ended.raw_rows[n_accepted], token, wanted)
        self._go_on(work.sequence, token, logprob)
        return work.sequence.stop_reason is None and work.drafts[n_accepted : n_accepted + 1] == (token,)

    def _go_on(self, sequence: GenerationState, token_id: int, logprob: TokenLogprob | None) -> None:
        """Take the next token, or end."""
        if not sequence.request.max_tokens:
            sequence.stop_reason = "length"
            return
        handle = self.handles[sequence.number]
        n_before, period_before = sequence.n_tokens, sequence.loop_period
        sequence.append(token_id, time.perf_counter())
        ends = sequence.n_tokens == n_before
        if not ends or logprob is not None:
            handle.put(NewToken(token_id, logprob, ends))
        if sequence.loop_period != period_before:
            handle.put(Loop(sequence.loop_period))
        if sequence.stop_reason is None and sequence.n_tokens >= self.ctx and not sequence.request.rolls:
            sequence.stop_reason = "length"
        if sequence.constraint is not None and sequence.stop_reason is None:
            sequence.constraint.take(token_id)

    def _finish(self, sequence: GenerationState, reason: StopReason) -> None:
        """Free its blocks, and send its end."""
        sequence.stop_reason = reason
        self.late.forget(sequence)
        sequence.figures.kv_bytes = cache_bytes(self.store, sequence, self.block_sizes)
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

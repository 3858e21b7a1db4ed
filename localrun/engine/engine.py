"""The engine: one thread that schedules, runs and postprocesses steps until told to stop."""

import os
import queue
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial

from localrun.base.errors import EngineError, LocalrunError, ModelFileError
from localrun.base.events import Loop, Prefill
from localrun.cache.store import CacheStore
from localrun.engine.disk_cache import DiskCache
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import Finished, GenerationHandle, NewToken, as_localrun_error
from localrun.engine.pick import pick
from localrun.engine.runner import Runner
from localrun.engine.sampler import SamplerSettings
from localrun.engine.scheduler import Scheduler, StepPlan
from localrun.engine.view import StoreView, block_states, cache_bytes, used_bytes, view_store
from localrun.ops.interface import CancelFlag, Logits, StepCancelled
from localrun.ops.largest_step import max_sequences

IDLE_SECONDS = 1.0  # without work, before blocks are written to the disk
CLOSE_SECONDS = 120.0  # for the engine to end, with all it has to write


class Stop:
    """Tells the thread to end."""


class Engine:
    """Owns the cache and the runner. All computing happens on its own thread."""

    def __init__(
        self, runner: Runner, store: CacheStore, ctx: int, endless: bool = True, disk: DiskCache | None = None
    ) -> None:
        """The store's `copy` must be the runner's. `endless`: positions may grow past the context."""
        self.runner, self.store, self.ctx = runner, store, ctx
        self.can_roll = endless and all(group.kind.is_bounded for group in store.groups)
        self.disk = disk
        self.handles: dict[int, GenerationHandle] = {}
        # None: look what there is to do
        self.inbox: queue.SimpleQueue[GenerationHandle | Stop | None] = queue.SimpleQueue()
        self.scheduler = Scheduler(store, max_sequences(ctx), disk, wake=partial(self.inbox.put, None))
        self.cancel_step = CancelFlag()
        self.in_step: tuple[GenerationState, ...] = ()  # what the running step computes
        self.step_lock = threading.RLock()  # held for a moment where these two change; a finalizer may come between
        self.is_closed = self.has_ended = False
        self.has_arrived = False  # a request that goes before what is computed in the background
        self.process = os.getpid()
        self.lock = threading.Lock()  # held while what `view` reads changes; never during a step
        self.last: GenerationState | None = None  # the newest that somebody waited for
        self.last_states: tuple[str, ...] = ("",) * len(store.groups)  # of its blocks, once it has ended
        self.thread = threading.Thread(target=self._loop, name="localrun-engine", daemon=True)
        self.thread.start()

    def submit(self, request: GenerationRequest) -> GenerationHandle:
        """Start a generation. Raises PromptTooLongError, UsageError or EngineError before anything is computed."""
        request.check(self.runner.vocab_size, self.ctx, self.can_roll)
        if (why := self.why_gone()) is not None:
            raise why
        handle = GenerationHandle(GenerationState(request), self.interrupt, self.why_gone)
        self.has_arrived |= not request.background
        self.inbox.put(handle)
        self.interrupt()
        return handle

    def warm(self, token_ids: Sequence[int], chat: str = "") -> GenerationHandle | None:
        """Compute a prompt while there is nothing else to do, so that a request that begins like it finds it cached.

        None where it could not be used. It ends when the handle is cancelled; its events need not be read.
        """
        if not 0 < len(token_ids) < self.ctx or not self.store.keep_prefixes or self.why_gone() is not None:
            return None
        nothing = SamplerSettings(temperature=0.0)
        return self.submit(
            GenerationRequest(tuple(token_ids), 0, frozenset(), nothing, seed=0, background=True, chat=chat)
        )

    def view(self) -> StoreView:
        """What the cache holds now, from any thread. Raises EngineError where the engine is gone."""
        if (why := self.why_gone()) is not None:
            raise why
        with self.lock:
            if self.last is None:
                return view_store(self.store, self.runner.block_sizes, 0, self.last_states, 0)
            states, n_bytes = self.last_states, self.last.kv_bytes
            if self.last.cache is not None:
                states, n_bytes = self._states(self.last), cache_bytes(self.last.cache, self.runner.block_sizes)
            return view_store(self.store, self.runner.block_sizes, self.last.n_computed, states, n_bytes)

    def interrupt(self) -> None:
        """Cut the running step short if nobody waits for any of it: for others it would have to be computed again."""
        with self.step_lock:
            if self.in_step and all(s.cancelled.is_set() or (self.has_arrived and s.background) for s in self.in_step):
                self.cancel_step.set()
            elif not self.in_step:
                self.inbox.put(None)

    def why_gone(self) -> LocalrunError | None:
        """A new error for whoever waits for an engine that does nothing any more; None while it lives."""
        if self.thread.is_alive() and not (self.is_closed or self.has_ended):
            return None
        if os.getpid() != self.process:
            what = "the model was loaded before this process was forked, and its engine stayed behind"
            return EngineError(what, "load the model in the process that uses it")
        if self.is_closed:
            return EngineError("the model is closed", "load it again")
        return EngineError("the engine has stopped", "load the model again, and please report this")

    def stop(self) -> None:
        """Have the thread end what runs as cancelled, keep what is to be kept, and free all; does not wait."""
        self.is_closed = True
        with self.step_lock:
            self.cancel_step.set()
        self.inbox.put(Stop())

    def close(self) -> None:
        """Stop, and wait for it."""
        if not self.thread.is_alive():
            return
        self.stop()
        if threading.current_thread() is self.thread:  # a finalizer may run anywhere
            return
        self.thread.join(CLOSE_SECONDS)
        if self.thread.is_alive():
            raise EngineError(
                f"the engine did not stop within {CLOSE_SECONDS:.0f} seconds", "end the program; is the disk stuck?"
            )

    def _loop(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            self._end()

    def _turn(self) -> bool:
        """Take new work and compute a step; False to stop."""
        try:
            if not self._receive():
                return False
            self._step()
        except Exception as error:  # a bug of ours must reach the callers, not vanish with the thread
            self._fail([handle.sequence for handle in self.handles.values()], error)
        return True

    def _receive(self) -> bool:
        """Take new work, waiting for some when idle; False to stop."""
        self.has_arrived = False
        while not self.inbox.empty() or not self.scheduler.busy:
            handle = self._next_handle()
            if isinstance(handle, Stop):
                return False
            if handle is None:  # somebody was cancelled, or wants to be looked at; who came besides is in the same step
                if self.inbox.empty():
                    return True
                continue
            self.handles[handle.sequence.number] = handle
            self.scheduler.add(handle.sequence)
        return True

    def _next_handle(self) -> GenerationHandle | Stop | None:
        """The next of the inbox; while there is none, what was computed goes to the disk."""
        seconds: float | None = IDLE_SECONDS
        while self.disk is not None and seconds is not None:
            try:
                return self.inbox.get(timeout=seconds)
            except queue.Empty:
                seconds = self._save_one()
        return self.inbox.get()

    def _save_one(self) -> float | None:
        try:
            return None if self.disk is None else self.disk.save_one()
        except Exception:  # answers do not depend on it
            self.disk = None
            return None

    def _end(self) -> None:
        """Nobody is left waiting, and nothing is left in memory."""
        self.has_ended = True
        for handle in list(self.handles.values()):
            handle.sequence.stop_reason = "cancelled"
            self._finish(handle.sequence)
        while not self.inbox.empty():
            handle_left = self.inbox.get()
            why = self.why_gone()
            if isinstance(handle_left, GenerationHandle) and why is not None:
                handle_left.put(why)
        if self.disk is not None:
            self.disk.close()
        self.runner.executor.close()

    def _step(self) -> None:
        """Schedule, run, postprocess."""
        with self.lock:
            self._drop_cancelled()
            plan = self.scheduler.schedule()
            self._announce()
        if plan.work:
            try:
                started = time.perf_counter()
                logits = self._run(plan)
            except StepCancelled:
                return
            except Exception as error:  # nothing tells whose it is
                self._fail([sequence for sequence, _ in plan.work], error)
                return
            with self.lock:
                self._postprocess(plan, logits, time.perf_counter() - started)
        ended = [handle.sequence for handle in self.handles.values() if handle.sequence.stop_reason is not None]
        if ended:
            with self.lock:
                for sequence in ended:
                    self._finish(sequence)

    def _run(self, plan: StepPlan) -> Logits:
        with self.step_lock:
            self.in_step = tuple(sequence for sequence, _ in plan.work)
            self.cancel_step.clear()
        self.interrupt()  # what came since this step was planned
        try:
            return self.runner.run(plan, self.cancel_step)
        finally:
            with self.step_lock:
                self.in_step = ()

    def _announce(self) -> None:
        """Tell what is cached of newly admitted sequences, before anything is computed."""
        for sequence in self.scheduler.running:
            if not sequence.announced:
                sequence.announced = True
                self._tell_progress(sequence, sequence.n_cached)
                self.last = self.last if sequence.background else sequence

    def _tell_progress(self, sequence: GenerationState, done: int) -> None:
        self.handles[sequence.number].put(Prefill(done, sequence.n_cached, sequence.n_prompt, sequence.note))

    def _postprocess(self, plan: StepPlan, logits: Logits, seconds: float) -> None:
        """Take what the step found; what goes wrong with one row is the end of that generation alone."""
        if any(n > 1 for _, n in plan.work):
            self.scheduler.observe(plan.n_rows, seconds)
        ended: list[tuple[int, GenerationState]] = []  # rows after which there is a token to choose
        for row, (sequence, n) in enumerate(plan.work):
            try:
                if not bool(logits.finite[row]):
                    raise ModelFileError("NONFINITE", "the model computed values that are not numbers", path="")
                self._take(sequence, n, seconds)
            except Exception as error:
                self._fail([sequence], error)
            else:
                if sequence.n_computed == sequence.n_tokens:
                    ended.append((row, sequence))
        self._choose(logits, ended)

    def _choose(self, logits: Logits, ended: Sequence[tuple[int, GenerationState]]) -> None:
        """Go on with the next tokens of these rows' sequences: of all at once, one by one where that fails."""
        try:
            tokens = pick(logits, ended)
        except Exception as error:
            for one in ended if len(ended) > 1 else ():
                self._choose(logits, [one])
            if len(ended) == 1:
                self._fail([ended[0][1]], error)
            return
        for (_, sequence), token in zip(ended, tokens, strict=True):
            try:
                self._go_on(sequence, token)
            except Exception as error:
                self._fail([sequence], error)

    def _take(self, sequence: GenerationState, n: int, seconds: float) -> None:
        """Count the next n tokens of a sequence as computed."""
        prompt_left = sequence.n_prompt - sequence.n_computed
        sequence.n_computed += n
        assert sequence.cache is not None
        self.store.commit(sequence.cache, sequence.token_ids, sequence.n_computed)
        if prompt_left > 0:
            sequence.prefill_seconds += seconds
            sequence.prefill_rows += n
            self._tell_progress(sequence, min(sequence.n_computed, sequence.n_prompt))

    def _go_on(self, sequence: GenerationState, token_id: int) -> None:
        """Take the next token, or end."""
        if sequence.background:
            sequence.stop_reason = "length"
            return
        handle = self.handles[sequence.number]
        n_before, period_before = sequence.n_tokens, sequence.loop_period
        sequence.append(token_id, time.perf_counter())
        if sequence.n_tokens > n_before:
            handle.put(NewToken(sequence.token_ids[-1]))
        if sequence.loop_period != period_before:
            handle.put(Loop(sequence.loop_period))
        if sequence.stop_reason is None and sequence.n_tokens >= self.ctx and not sequence.request.rolls:
            sequence.stop_reason = "length"

    def _drop_cancelled(self) -> None:
        for handle in list(self.handles.values()):
            if handle.sequence.cancelled.is_set():
                handle.sequence.stop_reason = "cancelled"
                self._finish(handle.sequence)

    def _finish(self, sequence: GenerationState) -> None:
        sequence.kv_bytes = cache_bytes(sequence.cache, self.runner.block_sizes)
        if sequence is self.last:
            self.last_states = self._states(sequence)
        self.scheduler.finish(sequence)
        sequence.kept_kv_bytes = max(0, used_bytes(self.store, self.runner.block_sizes) - sequence.kv_bytes)
        self.handles.pop(sequence.number).put(Finished(sequence))

    def _states(self, sequence: GenerationState) -> tuple[str, ...]:
        return block_states(self.store, sequence, () if self.disk is None else self.disk.restored)

    def _fail(self, sequences: Iterable[GenerationState], error: Exception) -> None:
        """End these generations with an error; nothing they computed is kept."""
        for sequence in sequences:
            handle = self.handles.pop(sequence.number)
            try:
                self.scheduler.abandon(sequence)
            finally:
                handle.put(as_localrun_error(error))

"""The engine: one thread that schedules, runs and postprocesses steps until it is closed."""

import os
import queue
import threading
import time
from collections.abc import Sequence
from functools import partial

from localrun.base.errors import EngineError, LocalrunError
from localrun.cache.bulk import keys_of
from localrun.cache.store import CacheStore
from localrun.engine.blocks_ahead import touch_ahead
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.generations import Generations
from localrun.engine.handle import GenerationHandle
from localrun.engine.images import RequestImages, check_images
from localrun.engine.runner import Runner
from localrun.engine.sampler import SamplerSettings
from localrun.engine.scheduler import Scheduler
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.step_plan import StepPlan
from localrun.engine.view import StoreView
from localrun.ops.interface import CancelFlag, Logits, StepCancelled
from localrun.ops.largest_step import MAX_ROWS, max_sequences
from localrun.storage.disk_cache import DiskCache
from localrun.storage.mapped_files import LOOKED_AT, DamagedWeightsError, MappedFiles

IDLE_SECONDS = 1.0  # without work, before blocks are written to the disk
CLOSE_SECONDS = 120.0  # for the engine to end, with all it has to write


class Stop:
    """Message that ends the thread."""


class Engine:
    """Owns the cache and the runner. All computing happens on its own thread."""

    def __init__(
        self,
        runner: Runner,
        store: CacheStore,
        ctx: int,
        endless: bool = True,
        disk: DiskCache | None = None,
        files: MappedFiles | None = None,
        parallel: int | None = None,
        speculation: Speculation | None = None,
    ) -> None:
        """The store's `copy` must be the runner's. `endless`: positions may grow past the context. `files`: those that
        weights are mapped from. `parallel`: sequences at once, as far as memory was planned for. `speculation`: drafts
        tokens; the runner's rows have to be exact."""
        assert speculation is None or runner.executor.exact_rows
        self.runner, self.store, self.ctx = runner, store, ctx
        self.can_roll = endless and all(group.kind.is_bounded for group in store.groups)
        self.disk = disk
        self.files = files or MappedFiles()
        self.resting = threading.Event()  # set while there has been nothing to do for a while
        self.inbox: queue.SimpleQueue[GenerationHandle | Stop | None] = queue.SimpleQueue()  # None: there may be work
        most = min(parallel or MAX_ROWS, max_sequences(ctx))
        self.wake = partial(self.inbox.put, None)  # the thread
        self.scheduler = Scheduler(store, most, disk, self.wake, runner.executor, speculation=speculation)
        self.generations = Generations(self.scheduler, runner.block_sizes, ctx)
        self.cancel_step = CancelFlag()
        self.in_step: tuple[GenerationState, ...] = ()  # what the running step computes
        self.step_lock = threading.RLock()  # held briefly where these two change; reentrant for finalizers
        self.is_closed = self.has_ended = False
        self.has_arrived = False  # a request that goes before what is computed for later
        self.process = os.getpid()
        self.lock = threading.Lock()  # held while what `view` reads changes; never during a step
        self.thread = threading.Thread(target=self._loop, name="localrun-engine", daemon=True)
        self.thread.start()

    def submit(self, request: GenerationRequest) -> GenerationHandle:
        """Start a generation. Raises what `accept` raises."""
        (handle := self.accept(request)).start()
        return handle

    def accept(self, request: GenerationRequest) -> GenerationHandle:
        """The handle of a generation, for its caller to start. Raises PromptTooLongError, UsageError or EngineError."""
        request.check(self.runner.vocab_size, self.ctx, self.can_roll)
        if request.images is not None:
            check_images(request.prompt, self.runner.executor, self.runner.sink_window, self.ctx + request.rolls)
        if self.files.look() is not None:
            self.wake()
        if (why := self.why_gone()) is not None:
            raise why
        span = self.runner.bulk_span if request.prompt_logprobs is None else 0  # few rows at a time are no bulk
        constraint = request.begin_constraint and request.begin_constraint(self.wake)
        return GenerationHandle(GenerationState(request, span, constraint), self)

    def start(self, handle: GenerationHandle) -> None:
        """Start an accepted generation."""
        self.resting.clear()
        self.has_arrived |= not handle.sequence.request.is_warm_up
        self.inbox.put(handle)
        self.interrupt()

    def warm(
        self, token_ids: Sequence[int], chat: str = "", images: RequestImages | None = None
    ) -> GenerationHandle | None:
        """Compute a prompt while there is nothing else to do, for a request that begins like it; None where that cannot
        be. It ends when the handle is cancelled; its events need not be read."""
        if not 0 < len(token_ids) < self.ctx or not self.store.keep_prefixes or self.why_gone() is not None:
            return None
        ids, nothing = tuple(token_ids), SamplerSettings(temperature=0.0)
        request = GenerationRequest(ids, 0, frozenset(), nothing, seed=0, is_warm_up=True, chat=chat, images=images)
        return self.submit(request)

    def view(self) -> StoreView:
        """Contents of the cache now, from any thread. Raises EngineError where the engine is gone."""
        if (why := self.why_gone()) is not None:
            raise why
        with self.lock:
            return self.generations.view()

    def n_known(self, prompt: Sequence[int]) -> int:
        """How many tokens of a prompt, from the first on, the prefix cache has computed. From any thread."""
        with self.lock:
            return self.store.tree.match(keys_of(list(prompt), self.runner.bulk_span)).n_tokens

    def interrupt(self) -> None:
        """Cancel the running step if no generation in it is waited for; others would have to compute it again."""
        with self.step_lock:
            if not self.in_step:
                self.inbox.put(None)
            elif not [s for s in self.in_step if not (s.cancelled.is_set() or (self.has_arrived and s.is_warm_up))]:
                self.cancel_step.set()

    def why_gone(self) -> LocalrunError | None:
        """A new error to raise while waiting for an engine that has stopped; None while it runs."""
        if self.thread.is_alive() and not (self.is_closed or self.has_ended):
            return None if self.files.problem is None else self.files.problem.twin()
        if os.getpid() != self.process:
            what = "the model was loaded before this process was forked, and its engine stayed behind"
            return EngineError(what, "load the model in the process that uses it")
        if self.is_closed:
            return EngineError("the model is closed", "load it again")
        return EngineError("the engine has stopped", "load the model again, and please report this")

    def stop(self) -> None:
        """Have the thread cancel all generations, write what is kept, and free everything; does not wait."""
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
            told = f"the engine did not stop within {CLOSE_SECONDS:.0f} seconds"
            raise EngineError(told, "end the program; is the disk stuck?")

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
            self.generations.fail(self.generations.sequences, error)
        return True

    def _receive(self) -> bool:
        """Take new work, waiting for some when idle; False to stop."""
        self.has_arrived = False
        while not self.inbox.empty() or not self.scheduler.busy:
            touch_ahead(self.store, self.inbox.empty)
            if isinstance(handle := self._next_handle(), Stop):
                return False
            if handle is not None:
                self.generations.add(handle)
            elif self.inbox.empty():  # a cancellation, or a view is wanted; what else has arrived joins this step
                return True
        return True

    def _next_handle(self) -> GenerationHandle | Stop | None:
        """The next of the inbox; while there is none, what was computed goes to the disk, and then it rests."""
        seconds: float | None = IDLE_SECONDS
        while (self.disk is not None or self.files.packed) and seconds is not None:
            try:
                return self.inbox.get(timeout=seconds)
            except queue.Empty:
                seconds = self._save_one()
        self.resting.set()
        try:
            deadline = self.generations.deadline  # of one that waits for the disk
            return self.inbox.get(timeout=None if deadline is None else max(0.0, deadline - time.perf_counter()))
        except queue.Empty:
            return None
        finally:
            self.resting.clear()

    def _save_one(self) -> float | None:
        try:
            return None if self.disk is None else self.disk.save_one()
        except Exception:  # answers do not depend on it
            self.disk = None
            return None

    def _end(self) -> None:
        """End all generations, and free the memory."""
        self.has_ended = True
        self.generations.cancel_all()
        while not self.inbox.empty():
            handle, why = self.inbox.get(), self.why_gone()
            if isinstance(handle, GenerationHandle) and why is not None:
                handle.put(why)
        self._discard_damaged()  # which may have been found since the last step
        if self.disk is not None:
            self.disk.close()
        self.scheduler.close()
        self.runner.executor.close()

    def _step(self) -> None:
        """Schedule, run, postprocess."""
        if self.files.problem is not None:
            self._refuse()
            return
        with self.lock:
            self.generations.drop_ended()
            plan = self.scheduler.schedule()
            self.generations.announce()
        if plan.work:
            self._compute(self.scheduler.drafted(plan, self.lock))
        if self.generations.constrained:
            with self.lock:
                self.generations.choose_late()
            self.generations.wait_for_forced()
            with self.lock:
                self.generations.take_forced()
        if (ended := self.generations.ended) and self.files.look() is not None:
            self._refuse()
        elif ended:
            with self.lock:
                self.generations.finish_ended()

    def _compute(self, plan: StepPlan) -> None:
        """Run a step, and take its logits."""
        try:
            started = time.perf_counter()
            logits = self._run(plan)
        except StepCancelled:
            return
        except Exception as error:  # of no known generation
            self.generations.fail([work.sequence for work in plan.work], error)
            return
        seconds = time.perf_counter() - started
        if self._why_wrong(logits) is not None:
            self._refuse()
            return
        with self.lock:
            self.generations.take(plan, logits, seconds)
        self.scheduler.follow(plan, self.runner.executor)

    def _why_wrong(self, logits: Logits) -> LocalrunError | None:
        """Explain a step that read something else from files than it should have."""
        why = self.files.look(LOOKED_AT)
        if why is not None or not self.files.packed:  # only packed weights can be to blame
            return why
        return None if all(map(bool, logits.finite)) else self.files.explain_not_finite()

    def _refuse(self) -> None:
        """Stop for good."""
        problem = self.files.problem
        assert problem is not None
        with self.lock:
            self.generations.fail(self.generations.sequences, problem)
        self._discard_damaged()

    def _discard_damaged(self) -> None:
        """Keep nothing on the disk that damaged weights computed."""
        if self.disk is not None and isinstance(self.files.problem, DamagedWeightsError):
            self.disk.discard()
            self.disk = None

    def _run(self, plan: StepPlan) -> Logits:
        with self.step_lock:
            self.in_step = tuple([work.sequence for work in plan.work])
            self.cancel_step.clear()
        self.interrupt()  # requests since this step was planned
        try:
            return self.runner.run(plan, self.cancel_step)
        finally:
            with self.step_lock:
                self.in_step = ()

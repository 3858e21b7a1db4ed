"""The engine: one thread that schedules, runs and postprocesses steps until told to stop."""

import queue
import threading
import time
from collections.abc import Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field

from localrun.base.errors import EngineError, LocalrunError, ModelFileError, PromptTooLongError, UsageError
from localrun.base.events import Loop, Prefill
from localrun.cache.groups import BLOCK_TOKENS
from localrun.cache.store import CacheStore
from localrun.engine.disk_cache import DiskCache
from localrun.engine.philox import uniform
from localrun.engine.runner import Runner
from localrun.engine.sampler import SamplerSettings, choose, choose_of_row
from localrun.engine.scheduler import Plan, Scheduler
from localrun.engine.sequence import GenerationRequest, Sequence
from localrun.engine.view import StoreView, block_states, lease_bytes, used_bytes, view_store
from localrun.ops.interface import CancelFlag, Logits, StepCancelled

IDLE_SECONDS = 1.0  # without work, before blocks are written to the disk


@dataclass(frozen=True, slots=True)
class NewToken:
    """The engine chose a token that belongs to the answer."""

    token_id: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A generation ended; its Sequence holds the figures."""

    sequence: Sequence


EngineEvent = Prefill | NewToken | Loop | Finished | LocalrunError


@dataclass(eq=False, slots=True)
class Ticket:
    """A generation under way: iterate it for its events, `cancel` it from any thread."""

    sequence: Sequence
    engine: "Engine"
    events: "queue.SimpleQueue[EngineEvent]" = field(default_factory=queue.SimpleQueue)

    def __iter__(self) -> Iterator[Prefill | NewToken | Loop | Finished]:
        while True:
            event = self.events.get()
            if isinstance(event, LocalrunError):
                raise event
            yield event
            if isinstance(event, Finished):
                return

    def cancel(self) -> None:
        self.sequence.cancelled.set()
        self.engine.interrupt()


class Engine:
    """Owns the cache and the runner. All computing happens on its own thread."""

    def __init__(
        self, runner: Runner, store: CacheStore, ctx: int, endless: bool = True, disk: DiskCache | None = None
    ) -> None:
        """The store's `copy` must be the runner's. `endless`: positions may grow past the context."""
        self.runner, self.store, self.ctx = runner, store, ctx
        self.can_roll = endless and all(group.window is not None for group in store.groups)
        self.disk = disk
        self.scheduler = Scheduler(store, disk=disk)
        self.tickets: dict[int, Ticket] = {}
        self.inbox: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self.cancel_step = CancelFlag()
        self.lock = threading.Lock()  # held while what `view` reads changes; never during a step
        self.last: Sequence | None = None  # the newest that somebody waited for
        self.last_states: tuple[str, ...] = ("",) * len(store.groups)  # of its blocks, once it has ended
        self.thread = threading.Thread(target=self._loop, name="localrun-engine", daemon=True)
        self.thread.start()

    def submit(self, request: GenerationRequest) -> Ticket:
        """Start a generation. Raises PromptTooLongError or UsageError before anything is computed."""
        if request.rolls and not self.can_roll:
            why = "positions of this model depend on the size of the context"
            raise UsageError(
                "the middle of a text cannot be forgotten here: "
                + (why if self.ctx >= 2 * BLOCK_TOKENS else "the context is too small"),
                "let the answer end at the context, or drop the oldest turns",
            )
        if len(request.prompt) >= self.ctx and not request.rolls:
            raise PromptTooLongError(
                f"the prompt has {len(request.prompt):,} tokens; the context holds {self.ctx:,}, the answer needs one",
                "shorten it, or give the model a larger context with --ctx",
                len(request.prompt),
            )
        if not request.prompt:
            raise EngineError("the prompt is empty", "give at least one token")
        ticket = Ticket(Sequence(request), self)
        self.inbox.put(ticket)
        if self.scheduler.in_background and not request.background:
            self.interrupt()
        return ticket

    def warm(self, token_ids: SequenceOf[int], chat: str = "") -> Ticket | None:
        """Compute a prompt while there is nothing else to do, so that a request that begins like it finds it cached.

        None where it could not be used. It ends when the ticket is cancelled; its events need not be read.
        """
        if not 0 < len(token_ids) < self.ctx or not self.store.keep_prefixes:
            return None
        nothing = SamplerSettings(temperature=0.0)
        return self.submit(
            GenerationRequest(tuple(token_ids), 0, frozenset(), nothing, seed=0, background=True, chat=chat)
        )

    def view(self) -> StoreView:
        """What the cache holds now, from any thread."""
        with self.lock:
            if self.last is None:
                return view_store(self.store, self.runner.block_sizes, 0, self.last_states, 0)
            states, n_bytes = self.last_states, self.last.kv_bytes
            if self.last.lease is not None:
                states, n_bytes = self._states(self.last), lease_bytes(self.last.lease, self.runner.block_sizes)
            return view_store(self.store, self.runner.block_sizes, self.last.n_computed, states, n_bytes)

    def interrupt(self) -> None:
        """Look at cancellations now rather than after the step."""
        self.cancel_step.set()

    def close(self) -> None:
        """Stop the thread; running generations end as cancelled."""
        if not self.thread.is_alive():
            return
        for ticket in list(self.tickets.values()):
            ticket.cancel()
        self.inbox.put(None)
        self.thread.join()
        self.runner.executor.close()

    def _loop(self) -> None:
        while self._receive():
            try:
                self._step()
            except LocalrunError as error:
                self._fail(error)
            except MemoryError:
                self._fail(EngineError("memory ran out during a step", "try a smaller context"))
            except Exception as error:  # a bug of ours must reach the caller, not vanish with the thread
                failure = EngineError(f"the engine failed: {type(error).__name__}: {error}", "please report this")
                failure.__cause__ = error
                self._fail(failure)

    def _receive(self) -> bool:
        """Take new work, waiting for some when idle; False to stop."""
        while not self.inbox.empty() or not self.scheduler.busy:
            ticket = self._next_ticket()
            if ticket is None:
                for left in list(self.tickets.values()):
                    left.sequence.stop_reason = "cancelled"
                    self._finish(left.sequence)
                if self.disk is not None:
                    self.disk.close()
                return False
            self.tickets[ticket.sequence.number] = ticket
            self.scheduler.add(ticket.sequence)
        return True

    def _next_ticket(self) -> Ticket | None:
        """The next of the inbox; while there is none, what was computed goes to the disk."""
        seconds: float | None = IDLE_SECONDS
        while self.disk is not None and seconds is not None:
            try:
                return self.inbox.get(timeout=seconds)
            except queue.Empty:
                seconds = self.disk.save_one()
        return self.inbox.get()

    def _step(self) -> None:
        """Schedule, run, postprocess."""
        self.cancel_step.clear()
        with self.lock:
            self._drop_cancelled()
            plan = self.scheduler.schedule()
            self._announce()
        if plan.work:
            try:
                started = time.perf_counter()
                logits = self.runner.run(plan, self.cancel_step)
            except StepCancelled:
                return
            with self.lock:
                self._postprocess(plan, logits, time.perf_counter() - started)
        with self.lock:
            for sequence in [t.sequence for t in self.tickets.values() if t.sequence.stop_reason is not None]:
                self._finish(sequence)

    def _announce(self) -> None:
        """Tell what is cached of newly admitted sequences, before anything is computed."""
        for sequence in self.scheduler.running:
            if not sequence.announced:
                sequence.announced = True
                self._tell_progress(sequence, sequence.n_cached)
                self.last = self.last if sequence.request.background else sequence

    def _tell_progress(self, sequence: Sequence, done: int) -> None:
        event = Prefill(done, sequence.n_cached, sequence.n_prompt, sequence.note)
        self.tickets[sequence.number].events.put(event)

    def _postprocess(self, plan: Plan, logits: Logits, seconds: float) -> None:
        now = time.perf_counter()
        if any(n > 1 for _, n in plan.work):
            self.scheduler.observe(plan.n_rows, seconds)
        for row, (sequence, n) in enumerate(plan.work):
            ticket = self.tickets[sequence.number]
            prompt_left = sequence.n_prompt - sequence.n_computed
            if not bool(logits.finite[row]):
                raise ModelFileError("NONFINITE", "the model computed values that are not numbers", path="")
            sequence.n_computed += n
            assert sequence.lease is not None
            self.store.commit(sequence.lease, sequence.token_ids, sequence.n_computed)
            if prompt_left > 0:
                sequence.prefill_seconds += seconds
                sequence.prefill_rows += n
                self._tell_progress(sequence, min(sequence.n_computed, sequence.n_prompt))
            if sequence.n_computed < sequence.n_tokens:
                continue
            if sequence.request.background:
                sequence.stop_reason = "length"
                continue
            n_before, period_before = sequence.n_tokens, sequence.loop_period
            sequence.append(pick(logits, row, sequence), now)
            if sequence.n_tokens > n_before:
                ticket.events.put(NewToken(sequence.token_ids[-1]))
            if sequence.loop_period != period_before:
                ticket.events.put(Loop(sequence.loop_period))
            if sequence.stop_reason is None and sequence.n_tokens >= self.ctx and not sequence.request.rolls:
                sequence.stop_reason = "length"

    def _drop_cancelled(self) -> None:
        for ticket in list(self.tickets.values()):
            if ticket.sequence.cancelled.is_set():
                ticket.sequence.stop_reason = "cancelled"
                self._finish(ticket.sequence)

    def _finish(self, sequence: Sequence) -> None:
        sequence.kv_bytes = lease_bytes(sequence.lease, self.runner.block_sizes)
        if sequence is self.last:
            self.last_states = self._states(sequence)
        self.scheduler.finish(sequence)
        sequence.kept_kv_bytes = max(0, used_bytes(self.store, self.runner.block_sizes) - sequence.kv_bytes)
        self.tickets.pop(sequence.number).events.put(Finished(sequence))

    def _states(self, sequence: Sequence) -> tuple[str, ...]:
        return block_states(self.store, sequence, () if self.disk is None else self.disk.restored)

    def _fail(self, error: LocalrunError) -> None:
        """End every generation of the failed step with its error; nothing it computed is kept."""
        for ticket in list(self.tickets.values()):
            self.scheduler.abandon(ticket.sequence)
            self.tickets.pop(ticket.sequence.number).events.put(error)


def pick(logits: Logits, row: int, sequence: Sequence) -> int:
    """The next token of one row: the argmax, or the sampler chain on candidates and, where needed, on the full row."""
    settings = sequence.request.settings
    if settings.temperature <= 0:
        return int(logits.argmax[row])
    u = uniform(sequence.request.seed, sequence.n_tokens)
    ids, logsumexp = logits.top_ids[row], float(logits.logsumexp[row])
    token = choose(ids, logits.top_values[row], logsumexp, len(ids) == logits.rows.shape[-1], settings, u)
    return choose_of_row(logits.row(row), logsumexp, settings, u) if token is None else token

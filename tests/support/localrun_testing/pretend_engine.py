"""A scheduler that runs without a model, on a clock of its own: steps take what a cost model says."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from localrun.base.request import Priority
from localrun.cache.store import CacheStore
from localrun.engine.generation import GenerationState
from localrun.engine.scheduler import Scheduler
from localrun.engine.step_plan import StepPlan
from localrun.engine.waiting_line import class_of
from localrun.model.config import LayerSpec, group_layers
from localrun.ops.largest_step import LEAST_CHUNK, MAX_ROWS
from localrun_testing.small_model import FULL, greedy


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of a step that decodes, and of each row of a prompt on top of that."""

    decode: float
    row: float

    def of(self, n_decodes: int, n_read: int) -> float:
        return self.decode + self.row * n_read


class PretendEngine:
    """Every step is taken, and what is chosen is any token. Without a cost no time passes."""

    def __init__(
        self,
        n_blocks: int,
        layers: tuple[LayerSpec, ...] = (FULL,),
        seed: int = 0,
        max_running: int = MAX_ROWS - LEAST_CHUNK,
        cost: Cost | None = None,
    ) -> None:
        groups = group_layers(layers)
        self.store = CacheStore(groups, [n_blocks] * len(groups))
        self.scheduler = Scheduler(self.store, max_running, clock=lambda: self.now)
        self.rng = random.Random(seed)
        self.cost, self.now = cost, 0.0
        self.n_rows = self.n_steps = 0
        self.preempted: Counter[int] = Counter()
        self.steps: list[tuple[float, dict[int, int]]] = []  # seconds, and rows by sequence
        preempt = self.scheduler._preempt

        def counted(sequence: GenerationState) -> None:
            self.preempted[sequence.number] += 1
            lowest = max(map(class_of, self.scheduler.running))
            youngest = [s for s in self.scheduler.running if class_of(s) == lowest][-1]
            assert sequence is youngest or sequence.is_warm_up, "the youngest of the lowest class is pushed out first"
            preempt(sequence)

        self.scheduler._preempt = counted  # type: ignore[method-assign]

    def add(
        self,
        n_prompt: int,
        n_answer: int,
        start: Sequence[int] = (),
        is_warm_up: bool = False,
        priority: Priority = "interactive",
    ) -> GenerationState:
        prompt = [*start, *self.rng.choices(range(97), k=n_prompt - len(start))]
        sequence = GenerationState(replace(greedy(prompt, n_answer), is_warm_up=is_warm_up, priority=priority))
        self.scheduler.add(sequence)
        return sequence

    def step(self) -> list[tuple[GenerationState, int]]:
        return self.take(self.scheduler.schedule())

    def take(self, plan: StepPlan) -> list[tuple[GenerationState, int]]:
        self.n_steps += 1
        self.n_rows += plan.n_rows
        assert plan.n_rows <= MAX_ROWS
        assert len({work.sequence.number for work in plan.work}) == len(plan.work)
        self._pass_time(plan)
        for work in plan.work:
            sequence = work.sequence
            sequence.n_computed += work.n
            assert sequence.cache is not None
            self.store.commit(sequence.cache, sequence.token_ids, sequence.n_computed)
            if sequence.n_computed == sequence.n_tokens:
                if sequence.is_warm_up:
                    sequence.stop_reason = "length"
                else:
                    sequence.append(self.rng.randrange(97), self.now)
        for sequence in [s for s in self.scheduler.running if s.stop_reason is not None]:
            self.scheduler.finish(sequence)
        return [(work.sequence, work.n) for work in plan.work]

    def _pass_time(self, plan: StepPlan) -> None:
        n_read = sum(work.n for work in plan.work if work.sequence.prefilling)
        if self.cost is not None:
            seconds = self.cost.of(plan.n_rows - n_read, n_read)
            self.now += seconds
            self.scheduler.cost.observe(plan.n_rows - n_read, n_read, seconds)
            self.steps.append((seconds, {work.sequence.number: work.n for work in plan.work}))

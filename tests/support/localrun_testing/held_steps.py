"""An engine that waits for the test: answers of small models are over before another thread does anything."""

import threading

from localrun.engine.engine import Engine
from localrun.engine.step_plan import StepPlan
from localrun.ops.interface import CancelFlag, Logits
from localrun_testing.waiting import PATIENCE


def wait_after(n_tokens: int, engine: Engine) -> threading.Event:
    """Have each step of an answer that has so many tokens wait until the event is set."""
    may_go_on, run = threading.Event(), engine.runner.run

    def held(plan: StepPlan, cancel: CancelFlag | None = None) -> Logits:
        if any(work.sequence.n_generated >= n_tokens for work in plan.work):
            assert may_go_on.wait(PATIENCE)
        return run(plan, cancel)

    engine.runner.run = held  # type: ignore[method-assign]
    return may_go_on

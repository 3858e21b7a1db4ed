"""Topic `drafts`: the cost of further rows of a step here, and so the gain of guessed tokens."""

import statistics
import time

from localrun.diagnose.explain.draft_gain import DEPTHS, report
from localrun.diagnose.explain.topic_report import TopicReport
from localrun.engine.load import LoadedModel
from localrun.engine.scratch_runs import ScratchRuns

LENGTH, ROUNDS = 64, 5


def explain(model: LoadedModel) -> TopicReport:
    return report({depth: step_seconds(model, 1 + depth) for depth in DEPTHS}, is_measured=True)


def step_seconds(model: LoadedModel, n_rows: int) -> float:
    """Seconds of a step that chooses a token after each of so many rows, the median of some."""
    seconds = []
    with ScratchRuns(model.engine.runner, model.engine.store, depth=LENGTH) as run:
        for number in range(ROUNDS):
            started = time.perf_counter()
            run.feed([0] * n_rows, LENGTH + number * n_rows, range(n_rows))
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)

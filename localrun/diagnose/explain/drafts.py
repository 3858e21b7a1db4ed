"""Topic `drafts`: the cost of further rows of a step here, and so the gain of guessed tokens."""

import statistics
import time

from localrun.diagnose.explain.draft_gain import DEPTHS, report
from localrun.diagnose.explain.topic_report import TopicReport
from localrun.engine.load import LoadedModel
from localrun.engine.scratch_runs import ScratchRuns

LENGTH, ROUNDS = 64, 9


def explain(model: LoadedModel) -> TopicReport:
    return report(step_seconds(model), is_measured=True)


def step_seconds(model: LoadedModel) -> dict[int, float]:
    """Seconds of a step by the tokens that are guessed in it: medians of rounds, after one to warm up."""
    rounds = [one_round(model) for _ in range(1 + ROUNDS)][1:]
    return never_less({depth: statistics.median([one[depth] for one in rounds]) for depth in DEPTHS})


def one_round(model: LoadedModel) -> dict[int, float]:
    """Seconds of one step of each depth, which choose a token after every row: what else runs meanwhile slows all."""
    seconds, start = {}, LENGTH
    with ScratchRuns(model.engine.runner, model.engine.store, depth=LENGTH) as run:
        for depth in DEPTHS:
            started = time.perf_counter()
            run.feed([0] * (1 + depth), start, range(1 + depth))
            seconds[depth] = time.perf_counter() - started
            start += 1 + depth
    return seconds


def never_less(seconds: dict[int, float]) -> dict[int, float]:
    """The same, where further rows never take less: a longer time was that of something else."""
    return {depth: min(s for other, s in seconds.items() if other >= depth) for depth in seconds}

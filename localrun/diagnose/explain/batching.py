"""Topic `batch`: the cost of several answers at once, for which weights are read once."""

from localrun.diagnose.bench import BenchCase, bench, blocks_for
from localrun.diagnose.explain.topic_report import Bars, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.engine.load import LoadedModel

SIZES, ANSWER, DEPTH, ROUNDS = (1, 2, 4, 8), 16, 64, 3
WORTH = 1.3  # times the tokens of one


def explain(model: LoadedModel) -> TopicReport:
    words = WORDS["batch"]
    sizes = [n for n in SIZES if n * blocks_for(DEPTH + ANSWER) <= max(model.plan.blocks)]
    runs = bench(model, [BenchCase("decode", ANSWER, DEPTH, n) for n in sizes], ROUNDS).runs
    figures = []
    for run in runs:
        best = None if run.percent_of_limit is None else run.percent_of_limit / 100 * run.batch / run.tps_median
        figures.append(
            Figure(
                f"a token for each of {run.batch}",
                "ms",
                "(weights + chats · cache) / limit of memory" if run is runs[0] else "",
                None if best is None else 1000 * best,
                1000 * run.batch / run.tps_median,
                at_best=True,
            )
        )
    rates = {f"{run.batch} at once": run.tps_median for run in runs}
    most = max(runs, key=lambda run: run.tps_median)
    gain = most.tps_median / runs[0].tps_median
    if gain >= WORTH:
        said = f"{most.batch} answers at once give {gain:.1f} times the tokens of one here."
        if most is not runs[-1]:
            said += " More do not help: from there on arithmetic is the limit."
    else:
        said = (
            "Here several at once gain next to nothing: weights so small stay in the processor's own cache, and "
            "reading them is not what takes the time. Models of some GB gain."
        )
    picture = Bars("Tokens a second, together", "tok/s", rates)
    return TopicReport("batch", words.title, words.text, tuple(figures), (picture,), said)

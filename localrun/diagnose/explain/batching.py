"""What answering several at once costs: weights are read once for all."""

from localrun.diagnose.bench import Case, bench, blocks_for
from localrun.diagnose.explain.lesson import Bars, Figure, Lesson
from localrun.engine.load import LoadedModel

SIZES, ANSWER, DEPTH, ROUNDS = (1, 2, 4, 8), 16, 64, 3


def explain(model: LoadedModel) -> Lesson:
    sizes = [n for n in SIZES if n * blocks_for(DEPTH + ANSWER) <= max(model.plan.blocks)]
    runs = bench(model, [Case("decode", ANSWER, DEPTH, n) for n in sizes], ROUNDS).runs
    rates = {f"{run.batch} at once": run.tps_best for run in runs}
    each = [1000 * run.batch / run.tps_best for run in runs]
    gain = runs[-1].tps_best / runs[0].tps_best
    figures = tuple(
        Figure(f"a token for each of {run.batch}", "ms", "", None, own) for run, own in zip(runs, each, strict=True)
    )
    return Lesson(
        "batch",
        "Why several answers at once are cheap",
        "Most of a token's time goes into reading weights. When several answers are under way, each weight that was "
        "read serves all of them: the total grows nearly with their number, until arithmetic or their caches are the "
        "limit.",
        figures,
        (Bars("Tokens a second, together", "tok/s", rates),),
        f"{runs[-1].batch} answers at once give {gain:.1f} times the tokens of one here.",
    )

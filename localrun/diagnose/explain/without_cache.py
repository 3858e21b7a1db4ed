"""Topic `cache`: the same answer with and without the cache."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from localrun.diagnose.explain.texts import Written, sample_ids, write, write_without_cache
from localrun.diagnose.explain.topic_report import Curve, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.engine.load import LoadedModel

PROMPT, ANSWER = 64, 32  # tokens


Way = Callable[[LoadedModel, Sequence[int], int], Written]


def best(model: LoadedModel, way: Way, prompt: Sequence[int], n: int) -> Written:
    """The shorter time of each token in two runs: other programs only ever make one longer."""
    first, second = way(model, prompt, n), way(model, prompt, n)
    return replace(first, seconds=tuple(map(min, first.seconds, second.seconds)))


def explain(model: LoadedModel) -> TopicReport:
    prompt, n = sample_ids(model, min(PROMPT, model.plan.ctx // 2)), min(ANSWER, model.plan.ctx // 4)
    write(model, prompt, 2)  # warms up
    cached, recomputed = best(model, write, prompt, n), best(model, write_without_cache, prompt, n)
    p = len(prompt)
    last = [1000 * median(one.seconds[-n // 4 :]) for one in (cached, recomputed)]
    figures = (
        Figure("computed with the cache", "tokens", "prompt + answer - 1", p + n - 1, cached.computed),
        Figure(
            "computed without",
            "tokens",
            "answer · prompt + answer · (answer - 1) / 2",
            n * p + n * (n - 1) / 2,
            recomputed.computed,
        ),
        Figure(
            "the same tokens came out",
            "tokens",
            "all of them",
            n,
            sum(a == b for a, b in zip(cached.tokens, recomputed.tokens, strict=True)),
        ),
        Figure("a late token with the cache", "ms", "", None, last[0]),
        Figure("a late token without", "ms", "", None, last[1]),
    )
    curve = Curve(
        "Time of each token of the answer",
        "ms",
        "token",
        list(range(2, n + 1)),  # the first reads the prompt either way
        {name: [1000 * s for s in one.seconds[1:]] for name, one in (("with", cached), ("without", recomputed))},
    )
    words = WORDS["cache"]
    return TopicReport(
        "cache",
        words.title,
        words.text,
        figures,
        (curve,),
        f"The cache made a late token {last[1] / last[0]:.1f} times as fast here, and more the longer the text.",
    )

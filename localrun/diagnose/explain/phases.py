"""The two phases of an answer, and which limit of the machine each of them meets."""

from localrun.diagnose.bench import BenchRun, Case, bench
from localrun.diagnose.explain.lesson import Bars, Figure, Lesson
from localrun.engine.load import LoadedModel

PROMPT, ANSWER, ROUNDS = 512, 32, 3


def measured(model: LoadedModel) -> tuple[BenchRun, BenchRun]:
    """A prompt, and tokens after it."""
    prompt = min(PROMPT, model.plan.ctx // 2)
    cases = (Case("prefill", prompt, 0), Case("decode", min(ANSWER, model.plan.ctx // 4), prompt))
    prefill, decode = bench(model, cases, ROUNDS).runs
    return prefill, decode


def explain(model: LoadedModel) -> Lesson:
    prefill, decode = measured(model)
    first, then = 1000 * prefill.n / prefill.tps_median, 1000 / decode.tps_median
    shares = [0.0 if run.percent_of_limit is None else run.percent_of_limit for run in (prefill, decode)]
    figures = (
        Figure("reading the prompt (TTFT)", "ms", "prompt / tokens a second", None, first),
        Figure("each token after it (ITL)", "ms", "1 / tokens a second", None, then),
        Figure("tokens a second, prompt", "tok/s", "", None, prefill.tps_median),
        Figure("tokens a second, answer", "tok/s", "", None, decode.tps_median),
        Figure("share of this machine's arithmetic, prompt", "%", "tokens · multiply-adds / limit", None, shares[0]),
        Figure("share of its memory bandwidth, answer", "%", "tokens · bytes of weights / limit", None, shares[1]),
    )
    ratio = prefill.tps_median / decode.tps_median
    return Lesson(
        "phases",
        "Why the first token is slow and the next ones are fast",
        f"A prompt is read {prefill.n:,} tokens together: each weight that comes from memory serves them all, so the "
        "arithmetic is the limit. An answer comes token by token: each needs all weights once more, so memory is the "
        "limit, and the arithmetic units wait.",
        figures,
        (Bars("Tokens a second", "tok/s", {"prompt": prefill.tps_median, "answer": decode.tps_median}),),
        f"A token of a prompt costs {ratio:.0f} times less than one of an answer. A smaller precision makes answers "
        "faster, for fewer bytes are read; a shorter prompt makes the first token come sooner.",
    )

"""The two phases of an answer, and which limit of the machine each of them meets."""

from localrun.base.units import percent
from localrun.diagnose.bench import BenchCase, BenchRun, bench
from localrun.diagnose.explain.topic_report import Bars, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.engine.load import LoadedModel

PROMPT, ANSWER, ROUNDS = 512, 32, 3
USUAL_ANSWER = 200  # tokens, of the turn whose time is looked at
BOUND, FREE = 50.0, 30.0  # percent of a limit: from here on it holds a phase up; below that something else does


def measured(model: LoadedModel) -> tuple[BenchRun, BenchRun]:
    """Measured prefill of a prompt, and decode after it."""
    prompt = min(PROMPT, model.plan.ctx // 2)
    cases = (BenchCase("prefill", prompt, 0), BenchCase("decode", min(ANSWER, model.plan.ctx // 4), prompt))
    prefill, decode = bench(model, cases, ROUNDS).runs
    return prefill, decode


def explain(model: LoadedModel) -> TopicReport:
    words = WORDS["phases"]
    prefill, decode = measured(model)
    first, then = 1000 * prefill.n / prefill.tps_median, 1000 / decode.tps_median
    shares = [run.percent_of_limit for run in (prefill, decode)]
    best = [None if share is None else time * share / 100 for time, share in zip((first, then), shares, strict=True)]
    figures = [
        Figure(f"reading {prefill.n} tokens (TTFT)", "ms", "tokens · multiply-adds / limit", best[0], first, True),
        Figure("each token after it (ITL)", "ms", "bytes of weights and cache / limit", best[1], then, True),
        Figure("tokens a second, prompt", "tok/s", "", None, prefill.tps_median),
        Figure("tokens a second, answer", "tok/s", "", None, decode.tps_median),
    ]
    names = ("arithmetic used by the prompt", "memory bandwidth used by the answer")
    known = {name: share for name, share in zip(names, shares, strict=True) if share is not None}
    figures += [Figure(name, "%", "best time / time", None, share) for name, share in known.items()]
    answer = USUAL_ANSWER * then
    pictures = [
        Bars(
            "A turn: what one waits for", "ms", {f"prompt of {prefill.n}": first, f"answer of {USUAL_ANSWER}": answer}
        ),
        Bars("Tokens a second", "tok/s", {"prompt": prefill.tps_median, "answer": decode.tps_median}),
    ]
    if known:
        pictures.append(Bars("Percent of what this machine can do", "%", known))
    return TopicReport(
        "phases", words.title, words.text, tuple(figures), tuple(pictures), advice(first, answer, prefill.n, *shares)
    )


def advice(first: float, answer: float, n: int, arithmetic: float | None, memory: float | None) -> str:
    """Which phase dominates, what limits it, and what helps; shares in percent, None where not measured."""
    total = first + answer
    if first > answer:
        slow = f"Of a turn with {n} new tokens and {USUAL_ANSWER} of answer the prompt takes {percent(first / total)}"
        return f"{slow}. {_cause(arithmetic, 'arithmetic', 'a shorter prompt, or one that begins as the last one did')}"
    slow = f"Of a turn with {n} new tokens and {USUAL_ANSWER} of answer the answer takes {percent(answer / total)}"
    return f"{slow}. {_cause(memory, 'memory bandwidth', 'a smaller precision of the weights, or `--kv q8`,')}"


def _cause(share: float | None, limit: str, remedy: str) -> str:
    if share is None:
        return f"What helps is {remedy.rstrip(',')}."
    if share >= BOUND:
        return f"It uses {share:.0f} % of the {limit}, which is its limit: {remedy} helps, more threads do not."
    if share >= FREE:
        return f"It uses {share:.0f} % of the {limit}: {remedy} helps, and so may closing other programs."
    return (
        f"It uses {share:.0f} % of the {limit} alone: a model this small, or a machine this busy, is held up by the "
        "work around it. Close other programs, or try fewer --threads."
    )

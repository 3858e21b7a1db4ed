"""Topics about time: two phases, the cache, turns of a chat, answers at once, drafts, and prices. Torch-free."""

from dataclasses import replace

from localrun.base.units import ms, percent
from localrun.diagnose.explain.draft_gain import DEPTHS, report
from localrun.diagnose.explain.topic_report import Bars, Curve, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.diagnose.predict.times import Times

POINTS, TURNS = 24, 4
BATCHES = (1, 2, 4, 8, 16, 32)


def cache(times: Times) -> TopicReport:
    """The same answer with and without the cache."""
    what = times.what
    p, n = what.prompt, what.answer
    lengths = [what.ctx * step // POINTS for step in range(1, POINTS + 1)]
    cached, recomputed = times.with_cache(what.ctx).longer, times.without_cache(what.ctx).longer
    figures = (
        Figure("computed with the cache", "tokens", "prompt + answer - 1", p + n - 1, None),
        Figure(
            "computed without", "tokens", "answer · prompt + answer · (answer - 1) / 2", n * p + n * (n - 1) / 2, None
        ),
        Figure("the last token with the cache", "ms", "(weights + cache) / bytes a second", 1000 * cached, None),
        Figure("the last token without", "ms", "tokens · multiply-adds / limit", 1000 * recomputed, None),
    )
    curve = Curve(
        "Time of a token by length of the text",
        "ms",
        "tokens",
        lengths,
        {
            "with": [1000 * times.with_cache(length).longer for length in lengths],
            "without": [1000 * times.without_cache(length).longer for length in lengths],
        },
    )
    now = "" if what.cached else " It is off now."
    conclusion = f"After {what.ctx:,} tokens the cache makes a token {recomputed / cached:,.0f} times as fast.{now}"
    return _report("cache", figures, (curve,), conclusion)


def phases(times: Times) -> TopicReport:
    """Prefill and decode: which limit each of them meets, and which of them takes longer."""
    what = times.what
    prompt, token = times.prefill(what.prompt), times.token(what.ctx)
    answer = times.answer_seconds()
    figures = (
        Figure(f"reading {what.prompt:,} tokens (TTFT)", "ms", "", 1000 * prompt.longer, None),
        Figure("each token after it (ITL)", "ms", "", 1000 * token.longer, None),
        Figure("tokens a second, prompt", "tok/s", "prompt / TTFT", what.prompt / prompt.longer, None),
        Figure("tokens a second, answer", "tok/s", "chats / ITL", what.chats / token.longer, None),
    )
    pictures = (
        Bars(
            "A turn: what one waits for",
            "ms",
            {
                f"prompt of {what.prompt:,}": 1000 * prompt.longer,
                f"answer of {what.answer:,}": 1000 * answer,
            },
        ),
        Bars(
            "What would take how long if it were alone",
            "ms",
            {
                "a prompt's token, memory": 1000 * prompt.memory / what.prompt,
                "a prompt's token, arithmetic": 1000 * prompt.arithmetic / what.prompt,
                "an answer's token, memory": 1000 * token.memory,
                "an answer's token, arithmetic": 1000 * token.arithmetic,
            },
        ),
    )
    share = prompt.longer / (prompt.longer + answer)
    longer, of_a_turn = ("prompt", share) if share >= 0.5 else ("answer", 1 - share)
    slow = f"the {longer} takes {percent(of_a_turn)} of a turn"
    remedy = REMEDIES["prefill" if share >= 0.5 else "decode", prompt.limit if share >= 0.5 else token.limit]
    if not what.cached:
        remedy = "every token reads the whole text again: turn the cache on"
    return _report("phases", figures, pictures, f"Here {slow}, and {remedy}.")


REMEDIES = {
    ("prefill", "arithmetic"): "arithmetic is its limit: a shorter prompt, or one that begins as the last one did, "
    "helps; a smaller precision does not",
    ("prefill", "memory"): "memory is its limit: a smaller precision helps, for fewer bytes are read",
    ("decode", "memory"): "memory is its limit: a smaller precision of the weights or of the cache helps, more threads "
    "do not",
    ("decode", "arithmetic"): "arithmetic is its limit: a smaller model or a shorter text helps, a smaller precision "
    "does not",
}


def reuse(times: Times) -> TopicReport:
    """The turns of a chat, with and without the cache of earlier turns."""
    what = times.what
    new = max(1, what.ctx // TURNS)
    found = {f"turn {turn + 1}": 1000 * times.prefill(new, turn * new).longer for turn in range(TURNS)}
    changed = 1000 * times.prefill(TURNS * new).longer
    last = list(found.values())[-1]
    figures = (
        Figure("tokens of the last turn's prompt", "tokens", "turns · tokens a turn", TURNS * new, None),
        Figure("of these read by the model", "tokens", "prompt - found", new, None),
        Figure("first token of that turn after", "ms", "", last, None),
        Figure("the same with another beginning", "ms", "", changed, None),
    )
    bars = Bars("First token after", "ms", found | {"turn 4, other beginning": changed})
    return _report(
        "reuse",
        figures,
        (bars,),
        f"What changes near the beginning makes all that follows new: here {ms(changed)} instead of {ms(last)}. Put "
        "what changes at the end.",
    )


def batch(times: Times) -> TopicReport:
    """Tokens per second of several chats that answer side by side."""
    what = times.what
    sizes = sorted({*BATCHES, what.chats})
    steps = {n: replace(times, what=replace(what, chats=n)).token(what.ctx) for n in sizes}
    rates = {f"{n} at once": n / step.longer for n, step in steps.items()}
    figures = [
        Figure(f"a token for each of {n}", "ms", f"limit: {step.limit}", 1000 * step.longer, None)
        for n, step in steps.items()
    ]
    figures.append(Figure(f"caches of {what.chats}", "bytes", "chats · cache of one", float(what.cache_bytes), None))
    best = max(sizes, key=lambda n: n / steps[n].longer)
    gain = best / steps[best].longer * steps[1].longer
    return _report(
        "batch",
        tuple(figures),
        (Bars("Tokens a second, together", "tok/s", rates),),
        f"{best} at once give {gain:.1f} times the tokens of one. Each chat brings a cache of its own, which every one "
        "of its tokens reads: the longer the chats, the less is gained.",
    )


def drafts(times: Times) -> TopicReport:
    """Steps that verify guessed tokens behind the newest one."""
    return report({depth: times.prefill(1 + depth, times.what.ctx).longer for depth in DEPTHS}, is_measured=False)


def price(times: Times) -> TopicReport:
    """A thousand tokens of prompt, of answer, and from the cache."""
    what = times.what
    read = 1e6 * times.prefill(what.prompt).longer / what.prompt
    written = 1e6 * times.token(what.ctx).longer / what.chats
    figures = (
        Figure("a thousand tokens read", "ms", "1000 / tokens a second of a prompt", read, None),
        Figure("a thousand tokens written", "ms", "1000 / tokens a second of an answer", written, None),
        Figure("written ÷ read", "x", "", written / read, None),
    )
    return _report(
        "price",
        figures,
        (Bars("Time of a thousand tokens", "ms", {"read": read, "written": written, "found in the cache": 0.0}),),
        f"One token written takes as long as {written / read:.1f} read. Several chats at once bring that down: that is "
        "why providers answer many together.",
    )


def _report(
    topic: str, figures: tuple[Figure, ...], pictures: tuple[Bars | Curve, ...], conclusion: str
) -> TopicReport:
    words = WORDS[topic]
    return TopicReport(topic, words.title, words.text, figures, pictures, conclusion)

"""The gain of guessed tokens, from what steps take. Torch-free."""

from localrun.diagnose.explain.topic_report import Bars, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS

DEPTHS = (0, 1, 3, 7, 15)
RIGHT = 0.8  # of guesses, for the picture


def report(seconds: dict[int, float], is_measured: bool) -> TopicReport:
    """Curve of the seconds of a step by the number of its drafts."""
    words = WORDS["drafts"]
    figures = [
        Figure(
            "a token by itself" if not depth else f"and {depth} guessed {'ones' if depth > 1 else 'one'} verified",
            "ms",
            "(weights + cache) / limit of memory, or rows · multiply-adds" if not depth and not is_measured else "",
            None if is_measured else 1000 * step,
            1000 * step if is_measured else None,
        )
        for depth, step in seconds.items()
    ]
    rates = {f"{depth} guessed": tokens_a_step(depth) / step for depth, step in seconds.items()}
    best = max(rates, key=lambda name: rates[name])
    gain = rates[best] / rates["0 guessed"]
    said = (
        f"With {best} a step, four of five right, an answer comes {gain:.1f} times as fast. Guesses come "
        "from the text so far, which pays where an answer quotes, and from a layer that some models have (MTP); the "
        "answer is the same, whatever is guessed."
        if best != "0 guessed"
        else "Here guesses gain nothing: further rows cost as much as further steps."
    )
    picture = Bars("Tokens a second, four of five guesses right", "tok/s", rates)
    return TopicReport("drafts", words.title, words.text, tuple(figures), (picture,), said)


def tokens_a_step(depth: int) -> float:
    """Tokens expected of a step: one, and each guess where those before it were right."""
    return sum(RIGHT**n for n in range(depth + 1))

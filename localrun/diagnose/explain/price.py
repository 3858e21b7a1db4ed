"""What input and output tokens cost in time here, as a hosted model would price them."""

from localrun.diagnose.explain.lesson import Bars, Figure, Lesson
from localrun.diagnose.explain.phases import measured
from localrun.engine.load import LoadedModel


def explain(model: LoadedModel) -> Lesson:
    prefill, decode = measured(model)
    read, written = 1e6 / prefill.tps_median, 1e6 / decode.tps_median  # ms for a thousand
    ratio = written / read
    figures = (
        Figure("a thousand tokens read", "ms", "1000 / tokens a second of a prompt", None, read),
        Figure("a thousand tokens written", "ms", "1000 / tokens a second of an answer", None, written),
        Figure("written ÷ read", "x", "", None, ratio),
    )
    return Lesson(
        "price",
        "Why output tokens cost more than input tokens",
        "Providers ask several times as much for a token written as for one read, and least for one they still have in "
        "their cache. The reason is the same here: time on the machine.",
        figures,
        (Bars("Time of a thousand tokens", "ms", {"read": read, "written": written}),),
        f"One token written takes as long as {ratio:.0f} read.",
    )

"""Topic `price`: the time of input and output tokens on this machine, as a hosted model would price them."""

from localrun.diagnose.explain.phases import measured
from localrun.diagnose.explain.topic_report import Bars, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.engine.load import LoadedModel


def explain(model: LoadedModel) -> TopicReport:
    prefill, decode = measured(model)
    read, written = 1e6 / prefill.tps_median, 1e6 / decode.tps_median  # ms for a thousand
    ratio = written / read
    figures = (
        Figure("a thousand tokens read", "ms", "1000 / tokens a second of a prompt", None, read),
        Figure("a thousand tokens written", "ms", "1000 / tokens a second of an answer", None, written),
        Figure("written ÷ read", "x", "", None, ratio),
    )
    words = WORDS["price"]
    return TopicReport(
        "price",
        words.title,
        words.text,
        figures,
        (Bars("Time of a thousand tokens", "ms", {"read": read, "written": written}),),
        f"One token written takes as long as {ratio:.0f} read.",
    )

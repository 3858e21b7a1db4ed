"""Topic `reuse`: tokens cached between the turns of a chat, so that only new ones are computed."""

from localrun.diagnose.explain.texts import SAMPLE
from localrun.diagnose.explain.topic_report import Ask, Bars, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.engine.load import LoadedModel

TURNS, ANSWER = 4, 16  # tokens that are asked for


def explain(model: LoadedModel, ask: Ask) -> TopicReport:
    room = model.plan.ctx - TURNS * (ANSWER + 1)
    sentences = max(1, min(8, room // (TURNS * len(model.text.tokenizer.encode(SAMPLE)))))
    text, turns = "", []
    for turn in range(TURNS):
        text += f"{turn + 1}. {SAMPLE * sentences}"
        turns.append(ask(text))
        text += turns[-1].text
    changed = ask("0. " + text)  # another beginning: nothing after it is the same any more
    new = [float(turn.cache.computed_tokens or 0) for turn in turns]
    read_before = [turn.prompt_tokens or 0 for turn in turns]
    expected = float(read_before[-1] - (turns[-1].cached_tokens or 0))
    figures = (
        Figure("tokens of the last turn's prompt", "tokens", "", None, read_before[-1]),
        Figure("of these found in the cache", "tokens", "", None, turns[-1].cached_tokens),
        Figure("of these read by the model", "tokens", "prompt - found", expected, new[-1]),
        Figure("first token of that turn after", "ms", "", None, turns[-1].timings.ttft_ms),
        Figure("the same with another beginning", "ms", "", None, changed.timings.ttft_ms),
        Figure("tokens read then", "tokens", "", None, changed.cache.computed_tokens),
    )
    bars = Bars(
        "First token after",
        "ms",
        {f"turn {number}": turn.timings.ttft_ms for number, turn in enumerate(turns, 1)}
        | {"turn 4, changed first word": changed.timings.ttft_ms},
    )
    words = WORDS["reuse"]
    return TopicReport(
        "reuse",
        words.title,
        words.text,
        figures,
        (bars,),
        "A change near the beginning (a system prompt with the time of day, an edited first message) makes everything "
        "that follows new. Put what changes at the end.",
    )

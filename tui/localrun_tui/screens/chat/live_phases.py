"""The phases of an answer under way: how long each has taken so far, how fast it is, and what is left."""

from textual.content import Content

from localrun.base.dataclass import dataclass
from localrun.base.units import ms, tps
from localrun.chat.prompt_progress import PromptProgress
from localrun.chat.turn import Answer
from localrun_tui.screens.chat.figure_lines import explained, heading, muted, phase_bars
from localrun_tui.screens.chat.status_line import phase_words


@dataclass(frozen=True, slots=True)
class LivePhases:
    """An answer at a moment: milliseconds by phase, the last of which is under way, and figures in words."""

    doing: str
    times: dict[str, float]
    facts: tuple[str, ...]


def phases_of(answer: Answer, now: float) -> LivePhases:
    """The phases at a moment, on the clock of `answer.began`. `before` ends where the prompt is read, of an answer that
    calls tools the last one."""
    begins = {"before": answer.began}
    facts = []
    if answer.prompt is not None:
        begins["prefill"] = answer.prompt.began
        facts += _prompt_facts(answer.prompt, now)
    if answer.ttft is not None:
        facts.append(f"first token after {ms(1000 * answer.ttft)}")
    if answer.wrote_from is not None:
        begins["decode"] = answer.wrote_from
    if answer.n_tokens:
        written = f"{answer.n_tokens:,} token{'' if answer.n_tokens == 1 else 's'} so far"
        rate = answer.tps(now)
        facts.append(f"{written}: {tps(rate)}" if rate else written)
    ends = [*list(begins.values())[1:], now]
    times = {name: 1000 * (end - begin) for (name, begin), end in zip(begins.items(), ends, strict=True)}
    return LivePhases(phase_words(answer.phase), times, tuple(facts))


def _prompt_facts(prompt: PromptProgress, now: float) -> list[str]:
    """How much of the prompt was reused, and how far the rest is read."""
    facts = [f"{prompt.last.cached:,} of {prompt.last.total:,} prompt tokens reused"]
    if prompt.tps:
        facts.append(f"{prompt.last.done - prompt.last.cached:,} read: {tps(prompt.tps)}")
        if (left := prompt.seconds_left(now)) is not None:
            facts[-1] += f", {ms(1000 * left)} left"
    return facts


def live_lines(live: LivePhases, width: int) -> list[Content]:
    """The phases as bars, with their figures below."""
    title = heading(f"This answer  {ms(sum(live.times.values()))}, {live.doing}")
    bars = phase_bars(live.times, list(live.times)[-1], width)
    facts = [line for fact in live.facts for line in muted(fact, width)]
    return explained([title.truncate(width, ellipsis=True), *bars, *facts], "phases")

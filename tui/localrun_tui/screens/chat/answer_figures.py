"""The lines of the inspector about an answer that is over: where its time went, and why."""

from collections.abc import Mapping
from typing import Any

from textual.content import Content

from localrun.base.sanitize import clean
from localrun.base.sentence import sentence
from localrun.base.units import ms, tps
from localrun.diagnose.diagnosis import SHORT_WAIT_MS, Diagnosis, diagnose
from localrun.diagnose.draft_words import draft_words
from localrun.diagnose.facts import Facts, facts_of
from localrun.diagnose.server_words import time_words
from localrun.diagnose.words import DiagnosisWords, in_words, summary
from localrun.fit.rates import Rates
from localrun_tui.markdown.wrapping import wrap
from localrun_tui.screens.chat.figure_lines import explained, heading, muted, phase_bars

_FORM = frozenset(["weights", "cache", "arithmetic", "evicted", "disk", "paging"])  # another one helps
_ODDS = "/odds: how sure the model was of each token"


def answer_lines(stats: Mapping[str, Any], rates: Rates | None, width: int) -> list[Content]:
    facts = facts_of(stats, rates)
    if facts is None:
        return [heading("Last answer"), *_remote(stats, width)]
    found = diagnose(facts)
    if found is None:
        return [
            heading("Last answer"),
            *muted("Nothing yet: ask something, and see here where the time goes.", width),
        ]
    title = heading(f"Last answer  {ms(sum(facts.stages.values()))}")
    lines = [title, *phase_bars(facts.stages, found.stage, width)]
    return [
        *explained([*_summary(found, facts, width), *lines, *_wait(facts, width)], "phases"),
        *explained(_reuse(stats, width), "reuse"),
        *explained(draft_lines(stats, width), "drafts"),
        *muted(_ODDS, width),
        *explained(_advice(in_words(found, facts), width), found.topic),
    ]


def _wait(facts: Facts, width: int) -> list[Content]:
    """The reason of a wait, where it was long, or longer than all else."""
    wait = facts.stages.get("wait", 0.0)
    if wait < SHORT_WAIT_MS and wait < max(facts.stages.values()):
        return []
    n = facts.meanwhile.ahead
    others = "another answer that was" if n == 1 else f"{n} other answers that were"
    own = "until the engine had ended what it was doing, such as a title"
    own = own if wait >= SHORT_WAIT_MS else "the way to the engine and back, and a free moment of it"
    words = f"for {others} under way" if n else own
    return muted(f"wait: {words}", width)


def _summary(found: Diagnosis, facts: Facts, width: int) -> list[Content]:
    """A sentence in plain words, and the key that does something about it."""
    words = summary(found, facts)
    if not words:
        return []
    key = "F7 loads it in another precision, context or codec." if found.slow and found.cause in _FORM else ""
    if found.slow and found.cause in ("cache", "attention", "evicted"):
        key += " Ctrl+N begins a new chat."
    return [*wrap(Content.assemble((words, "bold"), f" {key.strip()}" if key else ""), width), Content()]


def _remote(stats: Mapping[str, Any], width: int) -> list[Content]:
    """Figures of an answer from a server; it reports no others."""
    known = []
    if (prompt := stats.get("prompt_tokens")) is not None:
        cached = stats.get("cached_tokens")
        known.append(
            f"{prompt:,} tokens in the prompt" + (f", {cached:,} of them reused" if cached is not None else "")
        )
    if written := stats.get("completion_tokens"):
        known.append(f"{written:,} token{'' if written == 1 else 's'} in the answer")
    known += time_words(stats)
    if rate := stats.get("decode_tps"):
        known.append(tps(rate))
    words = (
        "It runs on a server, which says no more of it." if known else "It runs on a server, which says nothing of it."
    )
    return [*(line for fact in known for line in wrap(Content(fact), width)), *muted(words, width)]


def _reuse(stats: Mapping[str, Any], width: int) -> list[Content]:
    """How much of the prompt came from the cache, and why no more."""
    note = clean(str(stats.get("cache_note") or ""), keep_newlines=False)
    words = f"{int(stats.get('cached_tokens') or 0):,} of {int(stats.get('prompt_tokens') or 0):,} prompt tokens reused"
    return wrap(Content.styled(f"{words}; the rest: {note}" if note else words, "$foreground-muted"), width)


def draft_lines(stats: Mapping[str, Any], width: int) -> list[Content]:
    """How many of the answer's tokens were guessed, and what they gained, or why none were; nothing where none were
    looked for."""
    words = clean(draft_words(stats), keep_newlines=False)
    return wrap(Content.styled(words, "$foreground-muted"), width) if words else []


def _advice(advice: DiagnosisWords, width: int) -> list[Content]:
    sentences = [sentence(words) for words in (advice.why, advice.remedy) if words]
    told = [line for one in sentences for line in wrap(Content(clean(one)), width)]
    return [Content.styled(advice.title, "bold $text-warning"), *told]

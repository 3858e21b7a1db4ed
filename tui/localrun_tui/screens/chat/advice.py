"""Which phase of an answer was slow, why, and what helps: in plain words, from its figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localrun.base.units import gib, ms, tps
from localrun.diagnose.verdict import Verdict, verdict
from localrun.fit.rates import Rates


@dataclass(frozen=True, slots=True)
class Advice:
    """`title` says it in a few words, `why` explains it, `remedy` is what to do; empty where nobody can tell."""

    phase: str
    title: str
    why: str
    remedy: str = ""


def advise(stats: Mapping[str, Any], rates: Rates | None) -> Advice | None:
    """What took longest in an answer with these figures: those of a Completion. None where nobody took the time."""
    found = verdict(stats, rates)
    if found is None:
        return None
    if found.phase == "restore":
        return Advice(
            "restore",
            "the disk took longest",
            f"Reading {int(stats.get('restored_tokens') or 0):,} tokens of this chat back from disk took "
            f"{ms(found.milliseconds)}; computing them again would have taken longer.",
            "Chats that were used a short time ago are still in memory and need no disk.",
        )
    if found.phase in ("template", "tokenise"):
        return Advice(
            found.phase,
            "the text took longest",
            f"Preparing the prompt took {ms(found.milliseconds)}, more than the model itself.",
            "Nothing is wrong: the answer was short, or the prompt is very long text.",
        )
    phase = found.phase
    title = f"{phase} is {found.bound}" if found.bound else f"{phase} took longest"
    return Advice(phase, title, *(_prefill if phase == "prefill" else _decode)(found, stats))


def _prefill(found: Verdict, stats: Mapping[str, Any]) -> tuple[str, str]:
    total, cached = int(stats.get("prompt_tokens") or 0), int(stats.get("cached_tokens") or 0)
    computed = int(stats.get("computed_tokens") or 0)
    why = f"Reading the prompt (prefill) took longest: {computed:,} tokens{_rate(stats, 'prefill_tps')}. "
    why += {
        "compute-bound": "They go through every weight together, so arithmetic is the limit.",
        "memory-bound": "There were few of them for one pass over all weights, so the speed of memory is the limit.",
        "overhead-bound": "Neither memory nor arithmetic was busy: something else took the time.",
    }.get(found.bound or "", "")
    if cached * 2 < total:
        remedy = "Going on in the same chat reuses what was read: only the first message pays this. Shorter files help."
    else:
        remedy = f"{cached:,} of {total:,} tokens were reused already; shorter new messages or a faster device help."
    return why.strip(), remedy


def _decode(found: Verdict, stats: Mapping[str, Any]) -> tuple[str, str]:
    why = f"Writing the answer (decode) took longest{_rate(stats, 'decode_tps')}. "
    if found.bound == "memory-bound":
        why += f"Every token reads all weights and the cache, {gib(found.read_bytes)} a second: memory is the limit."
        return why, "Fewer bytes to read: a smaller model, fewer bits, or a quantised KV cache (q8) in a long chat."
    if found.bound == "compute-bound":
        return why + "Arithmetic is the limit.", "A smaller model, or more cores."
    if found.bound == "overhead-bound":
        why += "Memory and arithmetic had time to spare: the steps around them are the limit."
        return (
            why,
            "Usual for a small model: a larger one is hardly slower. Other busy programs do it, too.",
        )
    return why.strip(), ""


def _rate(stats: Mapping[str, Any], name: str) -> str:
    rate = stats.get(name)
    return f", {tps(float(rate))}" if rate else ""

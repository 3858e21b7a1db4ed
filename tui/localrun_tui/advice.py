"""Which phase of an answer was slow, why, and what helps: in plain words, from its figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localrun.base.units import gib, ms, tps

PHASES = {
    "render_ms": "template",
    "tokenize_ms": "tokenise",
    "restore_ms": "restore",
    "prefill_ms": "prefill",
    "decode_ms": "decode",
}


@dataclass(frozen=True, slots=True)
class Advice:
    """`bound` names the limit in two words, `why` explains it, `remedy` is what to do."""

    phase: str
    bound: str
    why: str
    remedy: str


def phases(stats: Mapping[str, Any]) -> dict[str, float]:
    """Milliseconds of each phase, in the order they happen."""
    return {name: float(stats.get(key) or 0.0) for key, name in PHASES.items()}


def advise(stats: Mapping[str, Any], weights_bytes: int) -> Advice:
    """What took longest in an answer with these figures (those of `run --json`)."""
    times = phases(stats)
    slowest = max(times, key=lambda phase: times[phase])
    if slowest == "prefill":
        return _prefill(stats)
    if slowest == "restore":
        return Advice(
            "restore",
            "disk-bound",
            f"Reading {int(stats.get('restored_tokens') or 0):,} tokens of this chat back from disk took "
            f"{ms(times['restore'])}; computing them again would have taken longer.",
            "Chats that were used a short time ago are still in memory and need no disk.",
        )
    if slowest in ("template", "tokenise"):
        return Advice(
            slowest,
            "text work",
            f"Preparing the prompt took {ms(times[slowest])}, more than the model itself.",
            "Nothing is wrong: the answer was short, or the prompt is very long text.",
        )
    return _decode(stats, weights_bytes)


def _prefill(stats: Mapping[str, Any]) -> Advice:
    total, cached = int(stats.get("prompt_tokens") or 0), int(stats.get("cached_tokens") or 0)
    why = (
        f"Reading the prompt (prefill) took longest: {total - cached:,} tokens, "
        f"{tps(float(stats.get('prefill_tps') or 0.0))}. "
        "They go through every weight together, so arithmetic is the limit."
    )
    if cached * 2 < total:
        remedy = "Going on in the same chat reuses what was read: only the first message pays this. Shorter files help."
    else:
        remedy = f"{cached:,} of {total:,} tokens were reused already; shorter new messages or a faster device help."
    return Advice("prefill", "compute-bound", why, remedy)


def _decode(stats: Mapping[str, Any], weights_bytes: int) -> Advice:
    rate = float(stats.get("decode_tps") or 0.0)
    kv = int(stats.get("kv_bytes") or 0)
    each = f"reads all {gib(weights_bytes)} of weights" if weights_bytes else "reads all weights"
    why = f"Writing the answer (decode) took longest: every token {each} once, so the speed of memory is the limit."
    if weights_bytes and rate:
        why += f" {tps(rate)} means {gib((weights_bytes + kv) * rate)} a second."
    if weights_bytes and kv > weights_bytes // 4 and stats.get("kv_codec") in ("f16", "f32"):
        remedy = "The KV cache is large by now: a quantised one (q8) is read faster."
    else:
        remedy = "Fewer bytes to read: a smaller model, or a precision of fewer bits. A shorter prompt changes little."
    return Advice("decode", "memory-bound", why, remedy)

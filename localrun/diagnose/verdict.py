"""Which phase of an answer was slow, and what held it up: from the work it did, its time, and what this machine can do.

Torch-free.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from localrun.base.events import Work
from localrun.fit.rates import Rates
from localrun.fit.roofline import usual_roofline

Phase = Literal["template", "tokenise", "restore", "prefill", "decode"]
Bound = Literal["memory-bound", "compute-bound", "overhead-bound"]

PHASES: dict[Phase, str] = {
    "template": "render_ms",
    "tokenise": "tokenize_ms",
    "restore": "restore_ms",
    "prefill": "prefill_ms",
    "decode": "decode_ms",
}
FEWEST_TOKENS, LEAST_SECONDS = 8, 0.02  # that tell anything about a phase
BOUND, OVERHEAD = 0.5, 0.3  # of the best pace: from here on it is the limit; below that something else is
CHUNK = 512  # tokens of a prompt that read the weights together, at most


@dataclass(frozen=True, slots=True)
class Verdict:
    """The phase that took longest, and its limit; `bound` is None where nobody can tell.

    `read_bytes`: read in a second, of weights and cache. `share`: of the best pace that memory or arithmetic allow.
    """

    phase: Phase
    milliseconds: float
    bound: Bound | None = None
    read_bytes: float = 0.0
    share: float = 0.0


def phases(stats: Mapping[str, Any]) -> dict[Phase, float]:
    """Milliseconds of each phase of an answer with these figures, in the order they happen."""
    return {phase: float(stats.get(name) or 0.0) for phase, name in PHASES.items()}


def verdict(stats: Mapping[str, Any], rates: Rates | None) -> Verdict | None:
    """What held up the answer with these figures: those of a Completion. None where no phase took any time.

    `rates` are those of the machine that answered, None where they were never measured.
    """
    times = phases(stats)
    slowest = max(times, key=lambda phase: times[phase])
    seconds, work = times[slowest] / 1000, _work(stats.get("work"))
    if not seconds:
        return None
    if slowest == "prefill":
        n_tokens = int(stats.get("computed_tokens") or 0)
        return pace("prefill", work, n_tokens, seconds, rates, seen=int(stats.get("cached_tokens") or 0) + n_tokens / 2)
    if slowest == "decode":
        n_tokens = int(stats.get("completion_tokens") or 0) - 1
        seen = float(stats.get("held_tokens") or 0)
        return pace("decode", work, n_tokens, seconds, rates, seen, int(stats.get("kv_bytes") or 0))
    return Verdict(slowest, times[slowest])


def pace(
    phase: Literal["prefill", "decode"],
    work: Work | None,
    n_tokens: int,
    seconds: float,
    rates: Rates | None,
    seen: float = 0.0,
    kv_bytes: int = 0,
) -> Verdict:
    """What limits a phase that computed `n_tokens` in `seconds`, each of which saw `seen` tokens before it.

    `kv_bytes`: of the cache that a token reads. The best pace is a usual share of what was measured: nobody reaches
    all of it.
    """
    if work is None or rates is None or n_tokens < FEWEST_TOKENS or seconds < LEAST_SECONDS:
        return Verdict(phase, 1000 * seconds)
    passes = n_tokens if phase == "decode" else -(-n_tokens // CHUNK)
    read = passes * (work.weight_bytes + kv_bytes)
    wide = n_tokens * (work.wide_macs + seen * work.attention_macs)
    limits = usual_roofline(rates)
    memory, compute = limits.reading(read) / seconds, limits.multiplying(n_tokens * work.macs, wide) / seconds
    share = max(memory, compute)
    limit: Bound = "memory-bound" if memory >= compute else "compute-bound"
    bound = limit if share >= BOUND else "overhead-bound" if share < OVERHEAD else None
    return Verdict(phase, 1000 * seconds, bound, read / seconds, share)


def _work(value: Any) -> Work | None:
    """That of a Completion, or of one that was kept as plain data."""
    if isinstance(value, Mapping):
        numbers = [value.get(field.name) for field in fields(Work)]
        return Work(*numbers) if all(isinstance(number, int) for number in numbers) else None  # type: ignore[arg-type]
    return value if isinstance(value, Work) else None

"""How close a phase of an answer came to the machine's limits, from its work and time. Torch-free."""

from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.events import Work
from localrun.fit.rates import MAC_SHARE, READ_SHARE, Rates
from localrun.fit.roofline import Limit, usual_roofline

Bound = Limit | Literal["overhead"]

FEWEST_TOKENS, LEAST_SECONDS = 8, 0.02  # that tell anything about a phase
BOUND, OVERHEAD = 0.5, 0.3  # of the best pace: from here on it is the limit; below that something else is


@dataclass(frozen=True, slots=True)
class Pace:
    """Share of the bytes per second or multiply-adds per second that were measured as possible, of the nearer limit.

    `bound`: what limits the phase, None between the two. `extra`: the share of these bytes or multiply-adds that were
    for earlier tokens: of the cache, or of attention.
    """

    share: float
    bound: Bound | None
    read_bytes: float  # a second
    extra: float


def pace(
    phase: Literal["prefill", "decode"],
    work: Work | None,
    n_tokens: int,
    seconds: float,
    rates: Rates | None,
    seen: float = 0.0,
    kv_bytes: int = 0,
) -> Pace | None:
    """Pace of a phase that computed `n_tokens` in `seconds`, each after `seen` tokens; None where unknown.

    `kv_bytes`: of the cache that a token reads. The bound follows from a typical share of the measured limits, which no
    program reaches completely.
    """
    if work is None or rates is None or n_tokens < FEWEST_TOKENS or seconds < LEAST_SECONDS:
        return None
    limits = usual_roofline(rates)
    n_times = n_tokens if phase == "decode" else 1
    least = limits.decode(work, seen, kv_bytes) if n_times > 1 else limits.prefill(work, n_tokens, seen, kv_bytes)
    best = n_times * least.longer / seconds
    attention = limits.multiplying(0, n_tokens * seen * work.attention_macs) / n_times
    by_memory = least.limit == "memory"
    return Pace(
        share=best * (READ_SHARE if by_memory else MAC_SHARE),
        bound=least.limit if best >= BOUND else "overhead" if best < OVERHEAD else None,
        read_bytes=n_times * least.memory * limits.read_bytes / seconds,
        extra=kv_bytes / (work.weight_bytes + kv_bytes) if by_memory else attention / least.arithmetic,
    )

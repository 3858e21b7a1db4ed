"""How fast this machine moves memory and multiplies, and how much of that answers reach: remembered in a file.

Other programs only ever make a machine look slower, so of several figures the highest counts: of the probes, which are
best taken while nobody else computes, and of what answers really reached.
"""

import math
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from localrun.backends.registry import usual_backend
from localrun.base.events import Completion, Work
from localrun.base.machine import cpu_limit, cpu_name
from localrun.fit.machine_file import read_machine, write_machine
from localrun.fit.probe import Probed, probe

IDLE_SECONDS, BUSY_SECONDS = 30 * 86400.0, 600.0  # that figures hold: taken while others computed they may be too low
READ_SHARE, MAC_SHARE = 0.7, 0.4  # of the peak that is reached in practice, where no answer has shown better
CACHED_BYTES = 256 << 20  # weights of fewer bytes may come from a cache of the processor
LEAST_TOKENS, LEAST_SECONDS = 32, 0.5  # of an answer that tells how fast a machine is
MOST_FOUND = 8.0  # times the measured limit; beyond that an answer was not counted right
GAIN = 1.02  # less is not worth a write

Phase = Literal["decode", "prefill"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes a second read from memory by all cores, and multiply-adds a second, of 8-bit and of wider numbers.

    `reached`: shares of these that answers reached, by phase and size of the model.
    """

    read_bytes: float
    macs: float
    wide_macs: float = 0.0  # 0: not measured
    idle: bool = True  # no other program computed while this was measured
    reached: Mapping[str, float] = field(default_factory=dict)

    def share(self, phase: Phase, weight_bytes: float) -> tuple[float, bool]:
        """How much of the limit a model of that size reaches, and whether an answer here has shown it."""
        known = self.reached.get(_class(phase, weight_bytes))
        return (known, True) if known else (READ_SHARE if phase == "decode" else MAC_SHARE, False)

    def better(self, other: "Rates") -> "Rates":
        """The higher of each figure."""
        names = {*self.reached, *other.reached}
        both = {name: max(self.reached.get(name, 0.0), other.reached.get(name, 0.0)) for name in names}
        return Rates(
            max(self.read_bytes, other.read_bytes),
            max(self.macs, other.macs),
            max(self.wide_macs, other.wide_macs),
            self.idle or other.idle,
            both,
        )

    def after(self, phase: Phase, work: Work, n_tokens: int, seconds: float, kv_bytes: float = 0.0) -> "Rates":
        """What is known after an answer that computed `n_tokens` in `seconds`: never less than before.

        One that was faster than a limit, with weights too large for a cache, shows that the limit is higher.
        """
        if n_tokens < LEAST_TOKENS or seconds < LEAST_SECONDS:
            return self
        if phase == "decode":
            found = n_tokens * (work.weight_bytes + kv_bytes) / seconds / self.read_bytes
        else:
            wide_macs = self.wide_macs or self.macs / 2
            found = n_tokens * (work.macs / self.macs + work.wide_macs / wide_macs) / seconds
        if not 0 < found <= MOST_FOUND:
            return self
        raised = self
        if found > 1 and work.weight_bytes >= CACHED_BYTES:
            raised = replace(self, **{name: found * getattr(self, name) for name in _LIMITS[phase]})
        key = _class(phase, work.weight_bytes)
        return replace(raised, reached={**self.reached, key: max(self.reached.get(key, 0.0), min(found, 1.0))})


_LIMITS: dict[Phase, tuple[str, ...]] = {"decode": ("read_bytes",), "prefill": ("macs", "wide_macs")}


def _class(phase: Phase, weight_bytes: float) -> str:
    """Models that reach about the same share: by weights that a token reads, in steps of four."""
    return f"{phase} {max(0, round(math.log(max(weight_bytes, 1) / (64 << 20), 4)))}"


def machine_rates(refresh: bool = False) -> Rates:
    """What is known of this machine; where that is nothing, old, or was taken in bad company, it is measured now."""
    known, measured_at = _known()
    age = time.time() - measured_at
    if known and not refresh and 0 <= age < (IDLE_SECONDS if known.idle else BUSY_SECONDS):
        return known
    found = _rates(probe())
    if known and known.idle and age > IDLE_SECONDS and found.idle:  # the machine may have changed
        return _keep(replace(found, reached=known.reached))
    return _keep(known.better(found) if known else found)


def known_rates() -> Rates | None:
    """What is known of this machine; nothing is measured now."""
    return _known()[0]


def note_limits(found: Probed) -> None:
    """Keep what was measured for another purpose, if it is better."""
    known, measured_at = _known()
    if known is None:
        _keep(_rates(found))
    else:
        _keep(known.better(_rates(found)), None if found.idle else measured_at)


def learn(answer: Completion) -> None:
    """Keep how fast an answer was, if no other was faster and anything is known to compare it with."""
    known, measured_at = _known()
    if known is None or answer.work is None:
        return
    work, kv_bytes = answer.work, answer.kv_bytes or 0
    better = known.after("prefill", work, answer.computed_tokens or 0, answer.prefill_ms / 1000)
    better = better.after("decode", work, answer.completion_tokens - 1, answer.decode_ms / 1000, kv_bytes)
    before, after = _figures(known), _figures(better)
    if any(value > GAIN * before.get(name, 0.0) for name, value in after.items()):
        _keep(better, measured_at)


def _figures(rates: Rates) -> dict[str, float]:
    return {"read": rates.read_bytes, "macs": rates.macs, "wide": rates.wide_macs, **rates.reached}


def _rates(found: Probed) -> Rates:
    return Rates(found.read_bytes, found.macs, found.wide_macs, found.idle)


def _key() -> str:
    details = usual_backend().details()
    computes = details.get("isa") or details.get("device") or "numpy"
    return f"{cpu_name()}, {platform.machine()}, {cpu_limit()} threads, {computes}"


def _known() -> tuple[Rates | None, float]:
    """What the file says of this machine, and when it was measured; a file that is no such file says nothing."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        known = read_machine()[_key()]
        read, macs, wide = (float(known[name]) for name in ("read_bytes", "macs", "wide_macs"))
        reached = {str(name): float(share) for name, share in known["reached"].items()}
        if read > 0 and macs > 0 and wide >= 0 and all(0 < share <= 1 for share in reached.values()):
            return Rates(read, macs, wide, bool(known["idle"]), reached), float(known["measured_at"])
    return None, 0.0


def _keep(rates: Rates, measured_at: float | None = None) -> Rates:
    write_machine(_key(), {**asdict(rates), "measured_at": time.time() if measured_at is None else measured_at})
    return rates

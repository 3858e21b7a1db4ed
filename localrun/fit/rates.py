"""Memory and multiplication rates of a machine, and the share of them that answers reach.

Other programs only ever make a machine look slower, so the highest figure counts: of the probes, which are best taken
while no other program is busy, and of what answers reached.
"""

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.events import Work

READ_SHARE, MAC_SHARE = 0.7, 0.4  # of the peak that is reached in practice, where no answer has shown better
CACHED_BYTES = 256 << 20  # weights of fewer bytes may come from a cache of the processor
LEAST_TOKENS, LEAST_SECONDS = 32, 0.5  # of an answer that tells how fast a machine is
ENCODE = "encode"  # among the shares: of the wider multiply-adds, that encoding of images reaches
MOST_FOUND = 8.0  # times the measured limit; beyond that an answer was not counted right

InferencePhase = Literal["decode", "prefill"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes per second read by all cores, and multiply-adds per second, of 8-bit and of wider numbers.

    `reached`: shares of these rates that answers reached, by phase and model size.
    """

    read_bytes: float
    macs: float
    wide_macs: float = 0.0  # 0: not measured
    idle: bool = True  # no other program computed while this was measured
    reached: Mapping[str, float] = field(default_factory=dict)

    def share(self, phase: InferencePhase, weight_bytes: float) -> tuple[float, bool]:
        """Share of the limit that a model of this size reaches, and whether it was measured on an answer here."""
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

    def encode_seconds(self, tflop: float) -> float:
        """About the seconds that encoding an image of so many teraflops takes."""
        return tflop * 1e12 / (2 * self._wide_macs * self.reached.get(ENCODE, MAC_SHARE))

    def after_encoding(self, tflop: float, seconds: float) -> "Rates":
        """Rates after an image was encoded; never lower than before."""
        if seconds < LEAST_SECONDS:
            return self
        share = min(tflop * 1e12 / (2 * self._wide_macs * seconds), 1.0)
        return replace(self, reached={**self.reached, ENCODE: max(self.reached.get(ENCODE, 0.0), share)})

    @property
    def _wide_macs(self) -> float:
        return self.wide_macs or self.macs / 2

    def after(
        self,
        phase: InferencePhase,
        work: Work,
        n_tokens: int,
        seconds: float,
        kv_bytes: float = 0.0,
        seen: float = 0.0,
    ) -> "Rates":
        """Rates after an answer that computed `n_tokens` in `seconds`; never lower than before.

        Each token of a prompt comes after `seen` others on average: without their share, a long prompt of a small model
        would look slow, and the next one far slower.

        An answer that beats a limit, with weights too large for a processor cache, shows that the limit is higher.
        """
        if n_tokens < LEAST_TOKENS or seconds < LEAST_SECONDS:
            return self
        if phase == "decode":
            found = n_tokens * (work.weight_bytes + kv_bytes) / seconds / self.read_bytes
        else:
            wide_macs = work.wide_macs + seen * work.attention_macs
            found = n_tokens * (work.macs / self.macs + wide_macs / self._wide_macs) / seconds
        if not 0 < found <= MOST_FOUND:
            return self
        raised = self
        if found > 1 and work.weight_bytes >= CACHED_BYTES:
            raised = replace(self, **{name: found * getattr(self, name) for name in _LIMITS[phase]})
        key = _class(phase, work.weight_bytes)
        return replace(raised, reached={**self.reached, key: max(self.reached.get(key, 0.0), min(found, 1.0))})


_LIMITS: dict[InferencePhase, tuple[str, ...]] = {"decode": ("read_bytes",), "prefill": ("macs", "wide_macs")}


def _class(phase: InferencePhase, weight_bytes: float) -> str:
    """Class of models that reach about the same share: by weight bytes per token, in steps of a factor of four."""
    return f"{phase} {max(0, round(math.log(max(weight_bytes, 1) / (64 << 20), 4)))}"

"""The speed at which a model reads and writes: that of earlier answers, else what this machine should reach."""

from collections.abc import Iterable, Mapping
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.events import ModelInfo, Work
from localrun.fit.precisions import bits_of
from localrun.fit.rates import LEAST_TOKENS, Rates
from localrun.fit.roofline import roofline


@dataclass(frozen=True, slots=True)
class ReadingSpeed:
    """Tokens per second."""

    reads: float
    writes: float

    def seconds(self, n_read: int, n_written: int) -> float:
        return n_read / self.reads + n_written / self.writes


def reading_speed(
    answers: Iterable[Mapping[str, Any]], info: ModelInfo, rates: Rates | None = None
) -> ReadingSpeed | None:
    """The speed of the last of `answers`, the stats of messages, that tells one; else by the roofline of `rates`.

    None where neither is known.
    """
    for stats in answers:
        n_read, reads, writes = (stats.get(name) for name in ("computed_tokens", "prefill_tps", "decode_tps"))
        if n_read and n_read >= LEAST_TOKENS and reads and writes:
            return ReadingSpeed(float(reads), float(writes))
    if rates is None or not info.weights_bytes:
        return None
    limits, _ = roofline(rates, info.weights_bytes)
    macs = round(8 * info.weights_bytes / bits_of(info.precision))  # one for each weight
    work = Work(weight_bytes=info.weights_bytes, macs=macs, wide_macs=0, attention_macs=0)
    return ReadingSpeed(1 / limits.multiplying(macs), 1 / limits.decode(work, 0.0, 0.0).longer)

"""The speed at which a model reads and writes: that of earlier answers, else what is usual on this machine."""

from collections.abc import Iterable, Mapping
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.events import ModelInfo, Work
from localrun.base.units import ms
from localrun.fit.precisions import bits_of
from localrun.fit.rates import LEAST_TOKENS, Rates
from localrun.fit.roofline import roofline

_WIDE = 2.0  # multiply-adds of 8-bit numbers that take as long as one of wider ones, usually
_KV_BYTES = 0.5  # of keys and values in f16 for a multiply-add of attention, where four heads share them, as is usual


@dataclass(frozen=True, slots=True)
class ReadingSpeed:
    """Tokens per second: as measured, or as is usual by arithmetic and memory."""

    reads: float
    writes: float
    is_measured: bool = True

    def seconds(self, n_read: int, n_written: int) -> float:
        return n_read / self.reads + n_written / self.writes

    def words(self, seconds: float) -> str:
        """A time at this speed: ≈ measured, ~ estimated."""
        return f"{'≈' if self.is_measured else '~'}{ms(1000 * seconds)}"


def reading_speed(
    answers: Iterable[Mapping[str, Any]], info: ModelInfo, rates: Rates | None = None, seen: int = 0
) -> ReadingSpeed | None:
    """The speed of the last of `answers`, the stats of messages, that tells one; else by the roofline of `rates`.

    None where neither is known. Tokens see `seen` others on average as they are read, and twice as many as one writes.
    """
    work = _work(info)
    for stats in answers:
        n_read, reads, writes = (stats.get(name) for name in ("computed_tokens", "prefill_tps", "decode_tps"))
        if n_read and n_read >= LEAST_TOKENS and reads and writes:
            then = (stats.get("cached_tokens") or 0) + n_read / 2  # seen by a token on average
            now = max(seen, then)
            reads, writes = float(reads), float(writes)
            if work is not None:
                reads *= _macs(work, then) / _macs(work, now)
                writes *= _bytes(work, 2 * then) / _bytes(work, 2 * now)
            return ReadingSpeed(reads, writes)
    if rates is None or work is None:
        return None
    limits, _ = roofline(rates, work.weight_bytes)
    reading = limits.multiplying(work.macs, work.wide_macs + seen * work.attention_macs)
    writing = limits.decode(work, 2 * seen, _bytes(work, 2 * seen) - work.weight_bytes).longer
    return ReadingSpeed(1 / reading, 1 / writing, rates.share("prefill", work.weight_bytes)[1])


def _work(info: ModelInfo) -> Work | None:
    """The work of a token; of a model of which that is not known, a multiply-add for each weight."""
    if info.work is not None or not info.weights_bytes:
        return info.work
    macs = round(8 * info.weights_bytes / bits_of(info.precision))
    return Work(weight_bytes=info.weights_bytes, macs=macs, wide_macs=0, attention_macs=0)


def _macs(work: Work, seen: float) -> float:
    return work.macs + _WIDE * (work.wide_macs + seen * work.attention_macs)


def _bytes(work: Work, seen: float) -> float:
    """Bytes that are read for a token: weights, and keys and values of those before it."""
    return work.weight_bytes + _KV_BYTES * seen * work.attention_macs

"""Roofline: the time of a computation that only memory and arithmetic limit. Torch-free."""

from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.events import Work
from localrun.fit.rates import MAC_SHARE, READ_SHARE, Rates
from localrun.ops.largest_step import MAX_ROWS

Limit = Literal["memory", "arithmetic"]


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds for reading alone and for multiplying alone. Both overlap, so the longer one is the limit."""

    memory: float
    arithmetic: float

    @property
    def longer(self) -> float:
        return max(self.memory, self.arithmetic)

    @property
    def limit(self) -> Limit:
        return "memory" if self.memory >= self.arithmetic else "arithmetic"


@dataclass(frozen=True, slots=True)
class Roofline:
    """Rates that are reached: bytes and multiply-adds per second; `wide_macs`: of numbers wider than 8 bits."""

    read_bytes: float
    macs: float
    wide_macs: float

    def reading(self, n_bytes: float) -> float:
        return n_bytes / self.read_bytes

    def multiplying(self, macs: float, wide_macs: float = 0.0) -> float:
        return macs / self.macs + wide_macs / self.wide_macs

    def decode(self, work: Work, seen: float, kv_bytes: float, chats: int = 1) -> Seconds:
        """Time of one token in each of `chats` chats, whose `seen` tokens take `kv_bytes`; weights are read once."""
        wide = work.wide_macs + seen * work.attention_macs
        return Seconds(
            self.reading(work.weight_bytes + chats * kv_bytes),
            self.multiplying(chats * work.macs, chats * wide),
        )

    def prefill(self, work: Work, n_tokens: int, seen: float, kv_bytes: float) -> Seconds:
        """Time of `n_tokens` prompt tokens that see `seen` tokens on average; weights are read once per step."""
        steps = -(-n_tokens // MAX_ROWS)
        wide = work.wide_macs + seen * work.attention_macs
        return Seconds(
            self.reading(steps * (work.weight_bytes + kv_bytes)),
            self.multiplying(n_tokens * work.macs, n_tokens * wide),
        )


def roofline(rates: Rates, weight_bytes: float) -> tuple[Roofline, bool]:
    """Roofline of a model that reads `weight_bytes` per token, and whether it was measured on answers here."""
    read_share, measured = rates.share("decode", weight_bytes)
    return _reached(rates, read_share, rates.share("prefill", weight_bytes)[0]), measured


def usual_roofline(rates: Rates) -> Roofline:
    """Roofline with the typical shares of the rates."""
    return _reached(rates, READ_SHARE, MAC_SHARE)


def _reached(rates: Rates, read_share: float, mac_share: float) -> Roofline:
    wide = rates.wide_macs or rates.macs / 2
    return Roofline(rates.read_bytes * read_share, rates.macs * mac_share, wide * mac_share)

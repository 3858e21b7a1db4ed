"""Limits of a device: the figures that speeds are held against."""

import statistics
from collections.abc import Sequence
from dataclasses import fields
from typing import Protocol

from localrun.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Copied and read bytes in GB/s, and multiply-adds in units of 10^9 a second for 8-bit and for 16-bit numbers.

    0 where a figure was not measured.
    """

    copy_gbps: float
    read_gbps: float
    int8_gmacs: float
    bf16_gmacs: float

    @classmethod
    def median(cls, measured: Sequence["Limits"]) -> "Limits":
        """The median of each figure."""
        return cls(*(statistics.median(getattr(one, field.name) for one in measured) for field in fields(cls)))


class LimitProbe(Protocol):
    """Measures again and again, over the same memory."""

    def measure(self) -> Limits:
        """About a tenth of a second."""
        ...

    def close(self) -> None: ...

"""Rope of a step's positions: cosines and sines once per rope kind, and scales of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from localrun.ops.interface import Angles

AHEAD = 64  # positions worked out together when a step has only one: decoding asks for the next ones soon


@dataclass(frozen=True, slots=True, eq=False)
class RopeKind:
    """Angles of one kind of rotary embedding: pair j turns by position · frequencies[j]; cos and sin are scaled."""

    frequencies: np.ndarray  # float64 [dims / 2]: the angle at position 10^6 must not lose its low bits
    magnitude: float

    @classmethod
    def of(cls, theta: float, dims: int, divisors: Sequence[float] | None, magnitude: float) -> "RopeKind":
        frequencies = theta ** (-np.arange(0, dims, 2, dtype=np.float64) / dims)
        return cls(frequencies if divisors is None else frequencies / np.asarray(divisors), magnitude)

    def cos_sin(self, positions: Sequence[int]) -> Angles:
        """cos and sin for `positions`; not to be written to."""
        if len(positions) != 1:
            return self.compute(positions)
        run, place = divmod(positions[0], AHEAD)
        cos, sin = kept_run(self, run)
        return cos[place : place + 1], sin[place : place + 1]

    def compute(self, positions: Sequence[int]) -> Angles:
        angles = np.asarray(positions, dtype=np.float64)[:, None] * self.frequencies
        cos, sin = np.cos(angles) * self.magnitude, np.sin(angles) * self.magnitude
        return cos.astype(np.float32), sin.astype(np.float32)


@lru_cache(maxsize=64)
def kept_run(kind: RopeKind, run: int) -> Angles:
    """cos and sin of AHEAD positions from run · AHEAD on."""
    return kind.compute(range(run * AHEAD, (run + 1) * AHEAD))


def query_scales(positions: Sequence[int], beta: float, floor: int) -> np.ndarray:
    """Factors of the queries at `positions`, f32: they grow each time another `floor` tokens lie before."""
    return np.asarray(1.0 + beta * np.log1p(np.asarray(positions) // floor), dtype=np.float32)

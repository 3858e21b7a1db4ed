"""Rope of a step's positions: cosines and sines once per rope kind, and scales of queries."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.ops.interface import Angles

Positions: TypeAlias = Sequence[int] | np.ndarray  # [R], or with rows of images [R, 3]: time, height, width

AHEAD = 64  # positions worked out together when a step has only one: decoding asks for the next ones soon


@dataclass(frozen=True, slots=True, eq=False)
class RopeKind:
    """Angles of one kind of rotary embedding: pair j turns by position · frequencies[j]; cos and sin are scaled.

    Rows of images have a position an axis (time, height, width): pair j takes that of axes[j].
    """

    frequencies: np.ndarray  # float64 [dims / 2]: the angle at position 10^6 must not lose its low bits
    magnitude: float
    axes: np.ndarray | None = None  # [dims / 2]; None: time alone

    @classmethod
    def of(
        cls,
        theta: float,
        dims: int,
        divisors: Sequence[float] | None,
        magnitude: float,
        axes: Sequence[int] | None = None,
    ) -> "RopeKind":
        frequencies = theta ** (-np.arange(0, dims, 2, dtype=np.float64) / dims)
        frequencies = frequencies if divisors is None else frequencies / np.asarray(divisors)
        return cls(frequencies, magnitude, None if axes is None else np.asarray(axes))

    def cos_sin(self, positions: Positions) -> Angles:
        """cos and sin for `positions`; not to be written to."""
        if isinstance(positions, np.ndarray) or len(positions) != 1:
            return self.compute(positions)
        run, place = divmod(positions[0], AHEAD)
        cos, sin = kept_run(self, run)
        return cos[place : place + 1], sin[place : place + 1]

    def compute(self, positions: Positions) -> Angles:
        angles = self.by_pair(np.asarray(positions, dtype=np.float64)) * self.frequencies
        cos, sin = np.cos(angles) * self.magnitude, np.sin(angles) * self.magnitude
        return cos.astype(np.float32), sin.astype(np.float32)

    def by_pair(self, positions: np.ndarray) -> np.ndarray:
        """The positions that pairs turn by: [R, pairs], or [R, 1] where all turn by the same."""
        if positions.ndim == 1:
            return positions[:, None]
        return positions[:, :1] if self.axes is None else positions.take(self.axes, axis=1)


@lru_cache(maxsize=64)
def kept_run(kind: RopeKind, run: int) -> Angles:
    """cos and sin of AHEAD positions from run · AHEAD on."""
    return kind.compute(range(run * AHEAD, (run + 1) * AHEAD))


def query_scales(positions: Positions, beta: float, floor: int) -> np.ndarray:
    """Factors of the queries at `positions`, f32 [R]: they grow each time another `floor` tokens lie before."""
    times = np.asarray(positions)
    times = times if times.ndim == 1 else times[:, 0]
    return np.asarray(1.0 + beta * np.log1p(times // floor), dtype=np.float32)

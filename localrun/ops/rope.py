"""Cosines and sines of a step's positions, once per rope kind."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class RopeKind:
    """Angles of one kind of rotary embedding: pair j turns by position · frequencies[j]; cos and sin are scaled."""

    frequencies: np.ndarray  # float64 [dims / 2]: the angle at position 10^6 must not lose its low bits
    magnitude: float

    @classmethod
    def of(cls, theta: float, dims: int, divisors: Sequence[float] | None, magnitude: float) -> "RopeKind":
        frequencies = theta ** (-np.arange(0, dims, 2, dtype=np.float64) / dims)
        return cls(frequencies if divisors is None else frequencies / np.asarray(divisors), magnitude)

    def cos_sin(self, positions: Sequence[int], device: torch.device) -> tuple[Tensor, Tensor]:
        """cos and sin for `positions` -> two f32 [R, dims / 2] on `device`."""
        angles = np.asarray(positions, dtype=np.float64)[:, None] * self.frequencies
        scaled = (np.cos(angles) * self.magnitude, np.sin(angles) * self.magnitude)
        cos, sin = (torch.from_numpy(x.astype(np.float32)).to(device) for x in scaled)
        return cos, sin

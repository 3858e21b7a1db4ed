"""The gated short convolution of LFM2: what a token brings is gated, mixed with the few before it, and gated again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.model.layer_weights import MixerWeights
from localrun.ops.instructions import Linear
from localrun.ops.recurrent import ShortConv
from localrun.ops.types import Value

if TYPE_CHECKING:
    from localrun.ops.recording import Ops


@dataclass(frozen=True, slots=True)
class GatedShortConv:
    channels: int
    taps: int

    @property
    def state_size(self) -> int:
        return (self.taps - 1) * self.channels

    def matrices(self, hidden: int) -> Mapping[str, tuple[int, int]]:
        return {"in": (3 * self.channels, hidden), "out": (hidden, self.channels)}

    def vectors(self) -> Mapping[str, tuple[int, ...]]:
        return {"conv": (self.channels, self.taps)}

    def mix(self, ops: Ops, a: Value, index: int, weights: MixerWeights) -> Value:
        (gates_and_x,) = ops(Linear(a, (weights.matrices["in"],)))
        return ops(ShortConv(gates_and_x, weights.vectors["conv"], self.taps, index, gated=True))[0]

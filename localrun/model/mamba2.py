"""Mamba-2, the state space layers of Granite 4 H: a short convolution, then the selective scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.cache.kinds.recurrent import Recurrent
from localrun.model.layer_weights import MixerWeights
from localrun.ops.instructions import Linear
from localrun.ops.recurrent import SelectiveScan, ShortConv
from localrun.ops.types import Value

if TYPE_CHECKING:
    from localrun.ops.recording import Ops


@dataclass(frozen=True, slots=True)
class Mamba2:
    """Mamba-2 mixer. Heads of one group share the inputs of their states (B) and the reads of them (C)."""

    n_heads: int
    head_dim: int
    n_groups: int
    state_dim: int
    taps: int
    eps: float

    @property
    def width(self) -> int:
        return self.n_heads * self.head_dim

    @property
    def channels(self) -> int:
        """Channels of the convolution: all x, B and C."""
        return self.width + 2 * self.n_groups * self.state_dim

    @property
    def state_size(self) -> int:
        return Recurrent.mamba(self.width, self.state_dim, self.taps, self.n_groups).state_size

    def matrices(self, hidden: int) -> Mapping[str, tuple[int, int]]:
        rows = {"z": self.width, "xbc": self.channels, "dt": self.n_heads}
        return {name: (n_rows, hidden) for name, n_rows in rows.items()} | {"out": (hidden, self.width)}

    def vectors(self) -> Mapping[str, tuple[int, ...]]:
        heads, conv = (self.n_heads,), {"conv": (self.channels, self.taps), "conv_bias": (self.channels,)}
        return {**conv, "decay": heads, "dt_bias": heads, "skip": heads, "gated_norm": (self.width,)}

    def mix(self, ops: Ops, a: Value, index: int, weights: MixerWeights) -> Value:
        matrices, vectors = weights.matrices, weights.vectors
        z, xbc, dt = ops(Linear(a, tuple(matrices[name] for name in ("z", "xbc", "dt"))))
        (xbc,) = ops(ShortConv(xbc, vectors["conv"], self.taps, index, bias=vectors["conv_bias"], act="silu"))
        scan = SelectiveScan(
            xbc,
            z,
            dt,
            vectors["decay"],
            vectors["dt_bias"],
            vectors["skip"],
            vectors["gated_norm"],
            self.eps,
            self.n_heads,
            self.head_dim,
            self.n_groups,
            self.state_dim,
            index,
            state_at=(self.taps - 1) * self.channels,
        )
        return ops(scan)[0]

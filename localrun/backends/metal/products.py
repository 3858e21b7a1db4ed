"""Products that mixtures of experts are made of; rows are f32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from localrun.backends.gpu.buffers import Buffer
from localrun.backends.gpu.device import Launch
from localrun.backends.gpu.matrices import ACTIVATIONS, expert_arguments
from localrun.backends.gpu.mixture import ExpertTiles
from localrun.backends.gpu.weight_layouts import layout_of
from localrun.backends.metal import linears
from localrun.backends.metal.linears import MatrixDevice
from localrun.base.dataclass import dataclass
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import Packed
from localrun.ops.types import LinearActivation

ROWS = 32  # of a gate and an up together that a threadgroup has, or of one matrix


@dataclass(frozen=True, slots=True)
class MetalProducts:
    """Launches on one device."""

    device: MatrixDevice

    @staticmethod
    def reads_codes(weight: Packed) -> bool:
        return False

    def quantize(self, a: Buffer, rows: int) -> Iterator[Launch]:
        yield from ()

    def linear(
        self, a: Buffer, weights: Sequence[LinearWeight], outs: Sequence[Tensor], act: LinearActivation = "none"
    ) -> Iterator[Launch]:
        rows = len(outs[0])
        yield from linears.linear(self.device, a.x(rows), weights, outs, rows, act=act)

    def experts(
        self,
        a: Buffer,
        rows: int,
        weights: Sequence[LinearWeight],
        out: Tensor,
        tiles: ExpertTiles,
        act: LinearActivation = "none",
    ) -> Iterator[Launch]:
        number, x = ACTIVATIONS.index(act), a.x(rows)
        layouts = {layout_of(weight.packed.qtype) for weight in weights}
        if len(layouts) == 1:
            yield self.launch(x, weights, out, tiles, SIDES=len(weights), ACT=number)
            return
        yield self.launch(x, weights[:1], out, tiles, SIDES=1, ACT=0)  # a gate that waits
        yield self.launch(x, weights[1:], out, tiles, SIDES=1, ACT=number)

    def launch(
        self, x: Tensor, weights: Sequence[LinearWeight], out: Tensor, tiles: ExpertTiles, **defines: int
    ) -> Launch:
        """One launch for one matrix, or for a gate and an up of one layout."""
        n_out, rows = out.shape[1], ROWS // len(weights)
        n_tiles = -(-n_out // 16) + (n_out % 16 > 0)  # an expert may begin within a tile
        kernel = self.device.kernel("experts.metal", "experts", **defines, **layout_of(weights[0].packed.qtype).defines)
        of_tiles = (out, n_out, tiles.n_experts, tiles.experts, tiles.pairs, len(out) // len(x))
        grid = (-(-16 * n_tiles // rows), len(tiles.experts), 1)
        return kernel.bind(grid, (256, 1, 1), *expert_arguments(weights), *of_tiles, x, x.shape[1])

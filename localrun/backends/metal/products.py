"""Products that mixtures of experts are made of; rows are f32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from localrun.backends.gpu.buffers import Buffer
from localrun.backends.gpu.device import Launch
from localrun.backends.gpu.matrices import ACTIVATIONS, expert_arguments
from localrun.backends.gpu.mixture import ExpertTiles
from localrun.backends.gpu.mixture_memory import FEW
from localrun.backends.gpu.weight_layouts import layout_of
from localrun.backends.metal import linears
from localrun.backends.metal.linears import MatrixDevice
from localrun.base.dataclass import dataclass
from localrun.ops.instructions import Experts, LinearWeight
from localrun.ops.layouts import Packed
from localrun.ops.types import LinearActivation

ROWS, ROWS_OF_MANY = 32, 64  # of a gate and an up together that a threadgroup has, or of one matrix
MOST_PAIRS = 32  # of a tile


@dataclass(frozen=True, slots=True)
class MetalProducts:
    """Launches on one device."""

    device: MatrixDevice

    @staticmethod
    def reads_codes(weight: Packed) -> bool:
        return False

    @staticmethod
    def most_pairs(experts: Experts) -> int:
        return MOST_PAIRS

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
        if len(layouts) == 1 and (len(weights) == 1 or tiles.size == FEW):
            yield self.launch(x, weights, out, tiles, SIDES=len(weights), ACT=number)
            return
        yield self.launch(x, weights[:1], out, tiles, SIDES=1, ACT=0)  # a gate that waits
        yield self.launch(x, weights[1:], out, tiles, SIDES=1, ACT=number)

    def launch(
        self, x: Tensor, weights: Sequence[LinearWeight], out: Tensor, tiles: ExpertTiles, **defines: int
    ) -> Launch:
        """One launch for one matrix, or in small tiles for a gate and an up of one layout."""
        n_out, arguments = out.shape[1], expert_arguments(weights)
        n_rows = 16 * (-(-n_out // 16) + (n_out % 16 > 0))  # an expert may begin within 16 rows of a matrix
        defines |= layout_of(weights[0].packed.qtype).defines
        of_tiles = (out, n_out, tiles.n_experts, tiles.experts, tiles.pairs, len(out) // len(x), x, x.shape[1])
        if tiles.size == FEW:
            kernel = self.device.kernel("experts.metal", "experts", **defines)
            grid = (-(-n_rows // (ROWS // len(weights))), len(tiles.experts), 1)
            return kernel.bind(grid, (256, 1, 1), *arguments, *of_tiles)
        defines |= {"N_X": tiles.size, "MATRIX": int(self.device.exact_matrices)}
        kernel = self.device.kernel("experts_many.metal", "experts_many", **defines)
        grid = (-(-n_rows // ROWS_OF_MANY), len(tiles.experts), 1)
        return kernel.bind(grid, (128, 1, 1), *arguments[: len(arguments) // 2], *of_tiles)

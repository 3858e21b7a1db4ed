"""Products of rows that are kept in several forms, each matrix with the form it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from localrun.backends.cuda import experts, linears, norms
from localrun.backends.gpu.buffers import Buffer
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.mixture import ExpertTiles
from localrun.backends.gpu.mixture_memory import FEW, MANY
from localrun.base.dataclass import dataclass
from localrun.ops.instructions import Experts, LinearWeight
from localrun.ops.layouts import Packed
from localrun.ops.types import LinearActivation


@dataclass(frozen=True, slots=True)
class CudaProducts:
    """Launches on one device; rows that are read quantised have been quantised before."""

    device: Device

    @staticmethod
    def reads_codes(weight: Packed) -> bool:
        return linears.reads_q8(weight)

    @staticmethod
    def most_pairs(experts: Experts) -> int:
        of_codes = all(linears.reads_q8(weight.packed) for weight in (*experts.widening, experts.down))
        return MANY if of_codes else FEW

    def quantize(self, a: Buffer, rows: int) -> Iterator[Launch]:
        q8 = a.q8(rows)
        if q8 is not None:
            yield norms.quantize(self.device, a.x(rows), rows, q8)

    def linear(
        self,
        a: Buffer,
        weights: Sequence[LinearWeight],
        outs: Sequence[Tensor],
        act: LinearActivation = "none",
        *,
        residual: Tensor | None = None,
        out_scale: float = 1.0,
    ) -> Iterator[Launch]:
        rows = len(outs[0])
        x = a.x(rows) if a.form.plain else None
        yield from linears.linear(
            self.device, x, a.q8(rows), weights, outs, rows, residual=residual, out_scale=out_scale, act=act
        )

    def experts(
        self,
        a: Buffer,
        rows: int,
        weights: Sequence[LinearWeight],
        out: Tensor,
        tiles: ExpertTiles,
        act: LinearActivation = "none",
    ) -> Iterator[Launch]:
        x = a.x(rows) if a.form.plain else None
        yield from experts.experts(self.device, x, a.q8(rows), rows, weights, out, tiles, act)

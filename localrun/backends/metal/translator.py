"""Metal launches for instructions that need more than a kernel of the same name.

Every launch costs a dispatch, so few rows are normed by the linears that read them, where nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor

from localrun.backends.gpu.buffers import Buffer
from localrun.backends.gpu.device import Launch
from localrun.backends.gpu.step_tensors import StepTensors
from localrun.backends.gpu.translator import Bucket, Translator
from localrun.backends.metal import linears, norms
from localrun.backends.metal.device import MetalDevice
from localrun.backends.metal.products import MetalProducts
from localrun.ops.instructions import Linear, LinearWeight, Norm
from localrun.ops.layouts import Packed
from localrun.ops.recording import Recorded


class MetalTranslator(Translator):
    """Linears read f32; attention reads a cache in any codec."""

    backend = "mps"

    def launches(self, recorded: Sequence[Recorded], bucket: Bucket, step: StepTensors) -> list[Launch]:
        few = bucket.rows <= linears.ONE_PASS_ROWS
        widths = {slot: buffer.form.width for slot, buffer in self.buffers.items()}
        self.waiting = fused_norms(recorded, widths) if few else {}
        return super().launches(recorded, bucket, step)

    @staticmethod
    def reads_codes(weight: Packed) -> bool:
        return False

    @property
    def products(self) -> MetalProducts:
        return MetalProducts(self.metal)

    @property
    def metal(self) -> MetalDevice:
        assert isinstance(self.device, MetalDevice)
        return self.device

    def norm(self, op: Norm, out: int) -> Iterator[Launch]:
        if out in self.waiting:
            return
        rest = None if op.residual is None else self.x(op.residual)
        rows = self.bucket.rows
        yield norms.norm(self.device, self.x(op.x), op.weight, op.eps, rows, residual=rest, out=self.x(out))

    def linear(self, op: Linear, *out: int) -> Iterator[Launch]:
        norm = self.waiting.get(op.a.index)
        yield from linears.linear(
            self.metal,
            self.x(op.a if norm is None else norm.x),
            op.weights,
            [self.x(slot) for slot in out],
            self.bucket.rows,
            residual=None if op.residual is None else self.x(op.residual),
            out_scale=op.out_scale,
            act=op.act,
            norm=None if norm is None else (norm.weight, norm.eps),
        )

    def logits(self, a: Buffer, weight: Packed, out: Tensor, rows: int) -> Iterator[Launch]:
        yield from linears.linear(self.metal, a.x(rows), (LinearWeight(weight),), [out], rows)


def fused_norms(recorded: Sequence[Recorded], widths: Mapping[int, int]) -> dict[int, Norm]:
    """Norms that the linears which read them can do for themselves, by the slot of their result.

    They are of whole rows, nothing but linears reads them, and what is normed is still there when the last of those
    runs. `widths`: numbers a row of every slot.
    """
    dies = {slot: at for at, each in enumerate(recorded) for slot in each.dead}
    readers: dict[int, list[tuple[int, bool]]] = {}
    for at, each in enumerate(recorded):
        for name, slot in each.reads.items():
            readers.setdefault(slot, []).append((at, isinstance(each.instruction, Linear) and name == "a"))
    found: dict[int, Norm] = {}
    for each in recorded:
        op, out = each.instruction, each.results[0]
        if not isinstance(op, Norm) or op.residual is not None or len(op.weight) != widths[op.x.index]:
            continue
        by_linears = out in dies and all(is_input for _, is_input in readers[out])
        if by_linears and dies.get(op.x.index, len(recorded)) >= dies[out]:
            found[out] = op
    return found

"""CUDA launches for instructions that need more than a kernel of the same name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from torch import Tensor

from localrun.backends.cuda import bulk_linears, linears, norms
from localrun.backends.cuda.bulk_linears import BulkMemory, Multiplies
from localrun.backends.cuda.products import CudaProducts
from localrun.backends.gpu.buffers import Buffer
from localrun.backends.gpu.device import Launch
from localrun.backends.gpu.translator import Translator
from localrun.ops.instructions import Linear, LinearWeight, Norm
from localrun.ops.layouts import Packed


class CudaTranslator(Translator):
    """Linears read rows quantised for the int8 tensor cores: by a norm at once, else before the first of them."""

    backend = "cuda"
    bulk: BulkMemory | None = None

    @property
    def products(self) -> CudaProducts:
        return CudaProducts(self.device)

    @staticmethod
    def reads_codes(weight: Packed) -> bool:
        return linears.reads_q8(weight)

    @staticmethod
    def reads_in_bulk(op: Linear) -> bool:
        return bulk_linears.reads_in_bulk(op)

    def make_room(self, in_bulk: Sequence[Linear], rows: int, span: int) -> None:
        self.bulk = BulkMemory.of(in_bulk, rows, span, self.device.torch_device)

    def norm(self, op: Norm, out: int) -> Iterator[Launch]:
        made = self.buffers[out]
        plain = self.x(out) if made.form.plain else None
        q8 = None if self.bucket.span else made.q8(self.bucket.rows)
        if q8 is not None:
            self.quantized.add(out)
        rest = None if op.residual is None else self.x(op.residual)
        yield norms.norm(
            self.device,
            self.x(op.x),
            op.weight,
            op.eps,
            self.bucket.rows,
            residual=rest,
            out=plain,
            q8=q8,
        )

    def linear(self, op: Linear, *out: int) -> Iterator[Launch]:
        read, span, outs = self.buffers[op.a.index], self.bucket.span, [self.x(slot) for slot in out]
        rest = None if op.residual is None else self.x(op.residual)
        if self.bulk is not None and span and self.reads_in_bulk(op):
            in_bulk = (cast("Multiplies", self.device), self.bulk, self.x(op.a), op.weights, outs, span)
            yield from bulk_linears.linear(*in_bulk, residual=rest, out_scale=op.out_scale, act=op.act)
            return
        yield from self.quantize_once(op.a)
        made, q8 = self.buffers[out[0]].q8(self.bucket.rows), read.q8(self.bucket.rows)
        plain = (
            rest is None
            and op.out_scale == 1
            and linears.can_quantize(self.device, op.weights, op.act, self.bucket.rows)
        )
        if made is not None and q8 is not None and plain:
            self.quantized.add(out[0])
            yield linears.gate_beside_up(self.device, q8, op.weights, outs[0], made, op.act)
            return
        yield from self.products.linear(read, op.weights, outs, op.act, residual=rest, out_scale=op.out_scale)

    def logits(self, a: Buffer, weight: Packed, out: Tensor, rows: int) -> Iterator[Launch]:
        yield from self.products.quantize(a, rows)
        yield from self.products.linear(a, (LinearWeight(weight),), [out[:rows]])

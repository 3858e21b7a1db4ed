"""Latent attention as native operations: matrices of heads, and what is stored."""

import ctypes
from collections.abc import Iterator

import numpy as np

from localrun.backends.cpu import abi
from localrun.backends.cpu.moe import MoeBuilder
from localrun.backends.cpu.operands import Native
from localrun.ops.latent import HeadLinear, LatentAppend


class LatentBuilder(MoeBuilder):
    """Translates `HeadLinear` and `LatentAppend`."""

    def head_linear(self, op: HeadLinear, out: int) -> Iterator[Native]:
        weight, n_heads = op.weight, op.n_heads
        assert not weight.adapters, "matrices of heads have none"
        a = self.kept(self.buffers.take(weight.packed.n_cols, self.activation_format_of(weight.packed), n_heads))
        yield (
            op.name,
            abi.HeadLinear(
                x=self.value(op.x),
                order=None if weight.gather is None else self.kept(np.asarray(weight.gather, np.int32)).ctypes.data,
                a=ctypes.pointer(a),
                weight=self.matrix(weight.packed),
                bias=self.vector(weight.bias),
                scale=self.scales(weight, n_heads),
                out=self.result(out),
                n_heads=n_heads,
            ),
        )
        self.buffers.give(a, n_heads)

    def latent_append(self, op: LatentAppend, out: int) -> Iterator[Native]:
        yield (
            op.name,
            abi.LatentAppend(
                q=self.value(op.q),
                q_rope=self.value(op.q_rope),
                latent=self.value(op.latent),
                k_rope=self.value(op.k_rope),
                out=self.result(out),
                layer=op.layer,
                rope=-1 if op.rope is None else op.rope,
            ),
        )

"""The native step program: one native operation or more for every recorded instruction."""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from localrun.backends.cpu import abi
from localrun.backends.cpu.latent import LatentBuilder
from localrun.backends.cpu.operands import Native
from localrun.base.errors import ModelFileError
from localrun.ops.encoder import Clamp, LayerNorm, SelfAttention
from localrun.ops.instructions import (
    AddImageRows,
    Attention,
    Embed,
    GeluMul,
    Instruction,
    Linear,
    LinearWeight,
    LogitsOf,
    Norm,
    RopeAppend,
    Scale,
    SigmoidMul,
    Xielu,
)
from localrun.ops.latent import HeadLinear
from localrun.ops.layouts import MAPPED, Packed
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv

NO_TOKEN = -1  # rows of images are in the step's buffer


class ProgramBuilder(LatentBuilder):
    """Translates instructions one by one, each by the method of its name."""

    vocab_size = 0
    last_norm: abi.Value  # what the logits are made of
    beside: abi.Value | None = None  # rows that go with them
    logits_rows = 0  # address of f32 [max_rows, vocab]; a row takes memory when it is first written

    def build(self) -> list[abi.Instruction]:
        built = []
        following = self.mapped_after()
        for number, recorded in enumerate(self.recorded):
            translate = getattr(self, recorded.instruction.name)
            announced = self.will_need(following.get(number, ()))
            for op, operands in (*announced, *translate(recorded.instruction, *recorded.results)):
                native = abi.Instruction(op=abi.OPS.index(op))
                setattr(native, op, operands)
                built.append(native)
            for slot in recorded.dead:
                if slot in self.values:
                    self.buffers.give(self.values.pop(slot))
        return built

    def mapped_after(self) -> dict[int, Sequence[Packed]]:
        """Weights in files that the next such instruction reads, by instruction; the last is followed by the first.

        Which experts are needed is not known ahead.
        """
        read = {
            number: [weight.packed for weight in weights_of(one.instruction) if weight.packed.mapped]
            for number, one in enumerate(self.recorded)
        }
        numbers = [number for number, weights in read.items() if weights]
        return {number: read[after] for number, after in zip(numbers, [*numbers[1:], *numbers[:1]], strict=True)}

    def embed(self, op: Embed, out: int) -> Iterator[Native]:
        made = self.result(out)
        if op.weight.layout is MAPPED:
            yield "embed_mapped", self.embed_mapped(op, made)
            return
        image_token = NO_TOKEN if op.image_id is None else op.image_id
        yield op.name, abi.Embed(self.matrix(op.weight), made, op.scale, image_token)

    def embed_mapped(self, op: Embed, made: Any) -> abi.EmbedMapped:
        """The same of rows that stay in their file."""
        (rows,) = self.kept(op.weight).planes
        number, shape = self.file_type(op.weight.qtype), (op.weight.n_rows, op.weight.n_cols)
        image_token = NO_TOKEN if op.image_id is None else op.image_id
        return abi.EmbedMapped(rows.ctypes.data, made, op.scale, number, *shape, image_token)

    def norm(self, op: Norm, out: int) -> Iterator[Native]:
        made = self.result(out)
        native = abi.Norm(x=self.value(op.x), residual=self.value(op.residual), out=made, eps=op.eps)
        native.weight, native.size = self.vector(op.weight), len(op.weight)
        yield op.name, native

    def linear(self, op: Linear, *out: int) -> Iterator[Native]:
        """One native operation for all weights whose columns lie in the same order."""
        made = [self.result(slot) for slot in out]
        orders = [b"" if weight.gather is None else np.asarray(weight.gather).tobytes() for weight in op.weights]
        if op.act != "none" and len(set(orders)) > 1:
            told = "gate and up of a layer have their columns in different orders (g_idx), which cannot be multiplied"
            raise ModelFileError("UNSUPPORTED", told, hint="run it with --backend reference")
        for order in dict.fromkeys(orders):
            places = [index for index, other in enumerate(orders) if other == order]
            yield from self.linear_of(op, places, [made[index] for index in places if index < len(made)], order)

    def linear_of(self, op: Linear, places: Sequence[int], made: Sequence[Any], order: bytes) -> Iterator[Native]:
        """The products of the weights at `places`, whose columns lie in this order, into `made`."""
        weights = [op.weights[place] for place in places]
        native = abi.Linear(
            a=self.value(op.a),
            residual=self.value(op.residual),
            n_weights=len(weights),
            out_scale=op.out_scale,
            act=abi.ACTIVATIONS[op.act],
        )
        between: list[abi.Value] = []
        for index, weight in enumerate(weights):
            self.fill(native, index, weight)
            between += self.adapt(native, index, weight)
        for index, out in enumerate(made):
            native.out[index] = out
        native.make_formats = self.missing_formats(op.a, order)
        if order and native.make_formats:
            native.order = self.kept(np.frombuffer(order, np.int32)).ctypes.data
        yield op.name, native
        for t in between:
            self.buffers.give(t)

    def rope_append(self, op: RopeAppend, *out: int) -> Iterator[Native]:
        made = [self.result(slot) for slot in out]
        yield (
            op.name,
            abi.RopeAppend(
                q=self.value(op.q),
                k=self.value(op.k),
                v=self.value(op.v),
                out=made[0],
                sink_out=made[1] if op.sink_query else None,
                q_weight=self.vector(op.q_weight),
                k_weight=self.vector(op.k_weight),
                layer=op.layer,
                rope=-1 if op.rope is None else op.rope,
                qk_norm=abi.QK_NORMS[op.qk_norm],
                eps=op.eps,
                v_norm=op.v_norm,
            ),
        )

    def attention(self, op: Attention, out: int) -> Iterator[Native]:
        yield (
            op.name,
            abi.Attention(
                q=self.value(op.q),
                sink_q=self.value(op.sink_query),
                out=self.result(out),
                sinks=self.vector(op.sinks),
                layer=op.layer,
                window=op.window or 0,
                sink_window=op.sink_window or 0,
                scale=op.scale,
                softcap=op.softcap or 0.0,
                spans=op.spans,
            ),
        )

    def sigmoid_mul(self, op: SigmoidMul, out: int) -> Iterator[Native]:
        made = self.result(out)
        yield op.name, abi.SigmoidMul(x=self.value(op.x), gate=self.value(op.gate), out=made)

    def gelu_mul(self, op: GeluMul, out: int) -> Iterator[Native]:
        made = self.result(out)
        yield op.name, abi.GeluMul(gate=self.value(op.gate), x=self.value(op.x), out=made, first=op.first)

    def scale(self, op: Scale, out: int) -> Iterator[Native]:
        made = self.result(out)
        yield op.name, abi.Scale(x=self.value(op.x), out=made, factor=op.factor)

    def xielu(self, op: Xielu, out: int) -> Iterator[Native]:
        numbers = op.positive, op.negative, op.linear, op.limit
        yield op.name, abi.Xielu(self.value(op.x), self.result(out), *numbers)

    def add_image_rows(self, op: AddImageRows, out: int) -> Iterator[Native]:
        yield op.name, abi.AddImageRows(self.value(op.x), self.result(out), op.place)

    def short_conv(self, op: ShortConv, out: int) -> Iterator[Native]:
        by_tap = np.asarray(op.weight).reshape(self.widths[out], op.taps).T
        yield (
            op.name,
            abi.ShortConv(
                x=self.value(op.x),
                out=self.result(out),
                weight=self.vector(by_tap),
                bias=self.vector(op.bias),
                taps=op.taps,
                silu=op.act == "silu",
                layer=op.layer,
                state_at=op.state_at,
                gated=op.gated,
            ),
        )

    def gated_delta_rule(self, op: GatedDeltaRule, out: int) -> Iterator[Native]:
        yield (
            op.name,
            abi.GatedDeltaRule(
                qkv=self.value(op.qkv),
                z=self.value(op.z),
                alpha=self.value(op.alpha),
                beta=self.value(op.beta),
                out=self.result(out),
                decay=self.vector(op.decay),
                dt_bias=self.vector(op.dt_bias),
                norm=self.vector(op.norm),
                n_key_heads=op.n_key_heads,
                n_value_heads=op.n_value_heads,
                key_dim=op.key_dim,
                value_dim=op.value_dim,
                tiled=op.tiled,
                layer=op.layer,
                state_at=op.state_at,
                eps=op.eps,
            ),
        )

    def selective_scan(self, op: SelectiveScan, out: int) -> Iterator[Native]:
        yield (
            op.name,
            abi.SelectiveScan(
                xbc=self.value(op.xbc),
                z=self.value(op.z),
                dt=self.value(op.dt),
                out=self.result(out),
                decay=self.vector(op.decay),
                dt_bias=self.vector(op.dt_bias),
                skip=self.vector(op.skip),
                norm=self.vector(op.norm),
                n_heads=op.n_heads,
                head_dim=op.head_dim,
                n_groups=op.n_groups,
                state_dim=op.state_dim,
                layer=op.layer,
                state_at=op.state_at,
                eps=op.eps,
            ),
        )

    def layer_norm(self, op: LayerNorm, out: int) -> Iterator[Native]:
        native = abi.LayerNorm(x=self.value(op.x), out=self.result(out), eps=op.eps)
        native.weight, native.bias = self.vector(op.weight), self.vector(op.bias)
        yield op.name, native

    def clamp(self, op: Clamp, out: int) -> Iterator[Native]:
        yield op.name, abi.Clamp(self.value(op.x), self.result(out), op.low, op.high)

    def self_attention(self, op: SelfAttention, out: int) -> Iterator[Native]:
        rope = -1 if op.rope is None else op.rope
        rows = {"q": self.value(op.q), "k": self.value(op.k), "v": self.value(op.v)}
        yield op.name, abi.SelfAttention(**rows, out=self.result(out), n_heads=op.n_heads, rope=rope, scale=op.scale)

    def logits(self, op: LogitsOf, out: int) -> Iterator[Native]:
        self.vocab_size = op.weight.n_rows
        self.logits_rows = self.buffers.allocate(4 * self.buffers.max_rows * op.weight.n_rows)
        self.last_norm = self.values[op.a.index]
        self.beside = None if op.beside is None else self.values[op.beside.index]
        width = self.last_norm.width
        gathered = self.kept(self.buffers.make(width, self.activation_format_of(op.weight), self.buffers.max_rows))
        native = abi.LogitsOp(
            a=self.value(op.a),
            weight=self.matrix(op.weight),
            rows=self.logits_rows,
            gathered=ctypes.pointer(gathered),
            scale=op.scale,
            softcap=op.softcap or 0.0,
        )
        yield op.name, native


def weights_of(op: Instruction) -> Sequence[LinearWeight]:
    """The matrices that an instruction reads whole."""
    if isinstance(op, HeadLinear):
        return (op.weight,)
    return op.weights if isinstance(op, Linear) else ()

"""Operands of native instructions: buffers of values, weights, and what keeps them alive."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from localrun.backends.cpu import abi
from localrun.backends.cpu.buffers import CpuBuffers
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.encoder import LayerNorm
from localrun.ops.instructions import Instruction, Linear, LinearWeight, Moe, Norm, Slot
from localrun.ops.layouts import Packed, Vector
from localrun.ops.recording import Recorded
from localrun.ops.widths import slot_widths

Native: TypeAlias = tuple[str, Any]  # the name of a native operation, and its structure of operands


class OperandBuilder:
    """Pointers to what instructions read and write. `matrix_of` and `activation_format_of` know the layouts of weights,
    `file_type` the numbers of quant types."""

    def __init__(
        self,
        recorded: Sequence[Recorded],
        layers: Sequence[CacheLayer],
        buffers: CpuBuffers,
        matrix_of: Callable[[Packed], abi.Matrix],
        activation_format_of: Callable[[Packed], int],
        file_type: Callable[[str], int],
        given: Sequence[int] = (),
    ) -> None:
        """`given`: widths of the first slots, which the caller of the program fills."""
        self.recorded, self.buffers = recorded, buffers
        self.matrix_of, self.activation_format_of, self.file_type = matrix_of, activation_format_of, file_type
        self.widths = slot_widths(recorded, layers, given)
        self.values: dict[int, abi.Value] = {}
        self.keep: list[Any] = []  # what the C side points to
        self.shared_routes: dict[tuple[int, int], Any] = {}  # by number of experts and of those chosen
        self.formats = self.wanted_formats()
        made = (one.results[0] for one in recorded if makes_formats(one.instruction))
        self.code_order = dict.fromkeys(made, b"")  # in which codes of a value were made
        for slot in range(len(given)):
            self.result(slot)

    def will_need(self, weights: Sequence[Packed], routes: Any = None) -> Iterator[Native]:
        """Tell the system which of these weights are read next, if they are mapped from files."""
        in_files = [weight for weight in weights if weight.mapped]
        native = abi.WillNeed(routes=routes)
        for index, weight in enumerate(in_files):
            native.weight[index] = self.matrix(weight)
        if in_files:
            yield "will_need", native

    def wanted_formats(self) -> dict[int, int]:
        """The formats in which some linear reads each value."""
        formats: dict[int, int] = {}
        for recorded in self.recorded:
            op = recorded.instruction
            if isinstance(op, Linear):
                read = [(op.a, weight.packed) for weight in op.weights]
            elif isinstance(op, Moe):
                weights = [weight.packed for weight in op.experts.widening]
                if op.shared is not None:
                    weights += [weight.packed for weight in op.shared.expert.widening]
                    weights += [] if op.shared.gate is None else [op.shared.gate]
                read = [(op.chosen_by or op.a, op.router.weight), *((op.a, weight) for weight in weights)]
            else:
                continue
            for a, weight in read:
                formats[a.index] = formats.get(a.index, 0) | self.activation_format_of(weight)
        return formats

    def missing_formats(self, a: Slot, order: bytes = b"") -> int:
        """The formats of a value that its reader has to make, as no norm did, or in another order than this."""
        if self.code_order.get(a.index) == order:
            return 0
        self.code_order[a.index] = order
        return self.formats[a.index]

    def product(
        self, a: Slot | abi.Value, made: Sequence[tuple[LinearWeight, abi.Value]], make_formats: int = 0
    ) -> abi.Linear:
        """scale · (a @ W.T) + bias for each of some weights, into its buffer."""
        read = ctypes.pointer(a) if isinstance(a, abi.Value) else self.value(a)
        linear = abi.Linear(a=read, n_weights=len(made), out_scale=1.0, make_formats=make_formats)
        for index, (weight, out) in enumerate(made):
            self.fill(linear, index, weight)
            linear.out[index] = ctypes.pointer(out)
        return linear

    def adapt(self, native: abi.Linear, index: int, weight: LinearWeight) -> list[abi.Value]:
        """Give a linear the adapters of one of its weights; returns buffers that are free when it is done."""
        between = [self.kept(self.buffers.take(adapter.a.n_rows, 0)) for adapter in weight.adapters]
        made = []
        for adapter, t in zip(weight.adapters, between, strict=True):
            (b,) = self.kept(adapter.b).planes
            made.append(abi.Adapter(self.matrix(adapter.a), ctypes.pointer(t), b.ctypes.data, adapter.scale))
        if made:
            native.adapter[index] = self.kept((abi.Adapter * len(made))(*made))
            native.n_adapters[index] = len(made)
        return between

    def fill(self, native: abi.Linear | abi.Experts, index: int, weight: LinearWeight, n_experts: int = 1) -> None:
        """Give an operation one of its weights."""
        native.weight[index], native.bias[index] = self.matrix(weight.packed), self.vector(weight.bias)
        native.scale[index] = self.scales(weight, n_experts)

    def scales(self, weight: LinearWeight, n: int) -> int | None:
        """The scale of each of n matrices that lie one after the other; None where products stay as they are."""
        if isinstance(weight.scale, float) and weight.scale == 1.0:
            return None
        return self.vector(np.broadcast_to(np.asarray(weight.scale, np.float32), (n,)))

    def result(self, slot: int) -> Any:
        self.values[slot] = self.kept(self.buffers.take(self.widths[slot], self.formats.get(slot, 0)))
        return ctypes.pointer(self.values[slot])

    def value(self, slot: Slot | None) -> Any:
        return None if slot is None else ctypes.pointer(self.values[slot.index])

    def matrix(self, weight: Packed) -> Any:
        return ctypes.pointer(self.kept(self.matrix_of(self.kept(weight))))

    def vector(self, x: Vector | None) -> int | None:
        return None if x is None else int(self.kept(np.ascontiguousarray(x, np.float32)).ctypes.data)

    def kept(self, thing: Any) -> Any:
        self.keep.append(thing)
        return thing


def makes_formats(op: Instruction) -> bool:
    """Whether an instruction leaves its result in the formats that linears read."""
    return isinstance(op, LayerNorm) or (isinstance(op, Norm) and op.residual is None)

"""The CPU library's operations one at a time: matrices, values with guard pages, and a step around one instruction."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gguf import quants
from torch import Tensor

from localrun.backends.cpu import abi, abi_step
from localrun.backends.cpu.bindings import CpuCalls, calls_of
from localrun.backends.cpu.library import NativeLibrary
from localrun.formats.quant import QUANT_TYPES

from .instruction_sets import library_in_use
from .native import int32s

GRID_TYPES = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S")
PAGE = mmap.PAGESIZE
POISON = 0xA5

WITHOUT_LAYOUT = ("Q1_0", "Q2_0")  # the reference decodes and multiplies them
NATIVE_TYPES = [name for name, row in QUANT_TYPES.items() if row.number is not None and name not in WITHOUT_LAYOUT]


def library() -> CpuCalls:
    """The library in use, with its grids; skips where there is none."""
    return with_grids(library_in_use())


@cache
def with_grids(native: NativeLibrary) -> CpuCalls:
    calls = calls_of(native)
    for name in GRID_TYPES:
        owner = getattr(quants, name)
        owner.init_grid()
        calls.set_grid(type_number(name), owner.grid.astype(np.int8).tobytes())
    return calls


def type_number(qtype: str) -> int:
    number = QUANT_TYPES[qtype].number
    assert number is not None
    return number


ZERO_POINT_TYPES = ("INT4_ZP_G32", "INT4_ZP_G128", "INT8_ZP_G32")
AFFINE_TYPES = ("INT2_G64", "INT4_G64", "INT5_G64", "INT6_G32", "INT6_G64", "INT8_G32", "INT8_G64")
AFFINE_F32_TYPES = ("INT4_F32_G32", "INT8_F32_G32")
F32_TYPES = tuple(name for name in QUANT_TYPES if "_F32_" in name)  # integers whose scales are f32
# Where the fp16 scales of a block are, for types that nothing here encodes.
HALF_SCALES = {
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ2_XXS": (0,), "IQ2_XS": (0,),
    "IQ2_S": (0,), "IQ3_XXS": (0,), "IQ3_S": (0,), "IQ1_S": (0,), "IQ4_NL": (0,), "IQ4_XS": (0,),
    **dict.fromkeys(AFFINE_TYPES, (0, 2)), **dict.fromkeys(ZERO_POINT_TYPES, (0,)),
}  # fmt: skip


def sample(qtype: str, n_rows: int, n_cols: int, seed: int = 0) -> Tensor:
    """A matrix of ordinary size in a quant type's own bytes: uint8 [n_rows, row_bytes]."""
    return _sample(qtype, n_rows, n_cols, seed).clone()


@lru_cache(maxsize=128)  # the next instruction set asks for the same: to quantise takes longer than what is tested
def _sample(qtype: str, n_rows: int, n_cols: int, seed: int) -> Tensor:
    row = QUANT_TYPES[qtype]
    generator = torch.Generator().manual_seed(seed)
    if row.encodes:
        return row.encode(torch.randn(n_rows, n_cols, generator=generator)).reshape(n_rows, -1)
    shape = (n_rows * n_cols // row.block_size, row.block_bytes)
    blocks = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    for offset in HALF_SCALES.get(qtype, ()):
        scales = 0.01 * (1 + torch.rand(len(blocks), 1, generator=generator))
        blocks[:, offset : offset + 2] = scales.half().view(torch.uint8)
    if qtype.startswith("INT4_ZP_G"):
        blocks[:, 2] &= 15  # a zero point is a code
    if qtype == "Q8_K":
        blocks[:, :4] = torch.tensor([0.01]).view(torch.uint8)
    if qtype in ("F8_E4M3", "F8_G128", "MXFP8"):
        blocks[:, -min(row.block_size, row.block_bytes) :] &= 0xBF  # below 2
    if qtype == "NF4_G64":
        blocks[:, 4] |= 0x0F  # the largest number of each is its scale
    if qtype in ("F8_G128", "NF4_G64", *F32_TYPES):
        for offset in (0, 4) if qtype in AFFINE_F32_TYPES else (0,):
            scales = 0.01 * (1 + torch.rand(len(blocks), 1, generator=generator))
            blocks[:, offset : offset + 4] = scales.view(torch.uint8)
    if qtype.startswith("INT4_ZP_F32"):
        blocks[:, 4] &= 15
    if qtype == "MXFP8":
        blocks[:, 0] = 120 + blocks[:, 0] % 8
    if qtype == "NVFP4":
        blocks[:, :4] &= 0x3F
    if qtype == "IQ1_M":  # the half is spread over four nibbles
        blocks[:, 49:56:2] = blocks[:, 49:56:2] & 0x0F | torch.tensor([0, 0, 0, 0x20], dtype=torch.uint8)
    return blocks.reshape(n_rows, -1)


def decoded(qtype: str, raw: Tensor, n_cols: int) -> Tensor:
    return QUANT_TYPES[qtype].decode(raw.flatten(), (len(raw), n_cols))


def nmse(found: Tensor, expected: Tensor) -> float:
    """Mean square error over mean square."""
    error = (found.double() - expected.double()).square().sum()
    return float(error / expected.double().square().sum())


class Guarded:
    """Memory that ends at a page nobody may touch: one byte too far is a crash. Filled with POISON."""

    def __init__(self, n_bytes: int, align: int = 4) -> None:
        self.n_bytes = n_bytes
        n_pages = -(-max(n_bytes, 1) // PAGE)
        libc = ctypes.CDLL(None, use_errno=True)
        self.map = mmap.mmap(-1, (n_pages + 1) * PAGE)
        self.array = np.frombuffer(self.map, dtype=np.uint8)
        base = self.array.ctypes.data
        protect = libc.mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        assert protect(base + n_pages * PAGE, PAGE, 0) == 0
        self.start = (n_pages * PAGE - n_bytes) // align * align
        self.array[: n_pages * PAGE] = POISON
        self.address = base + self.start

    def tensor(self, dtype: torch.dtype, *shape: int) -> Tensor:
        part = self.array[self.start : self.start + self.n_bytes]
        return torch.from_numpy(part).view(dtype).reshape(shape)


def code_bytes() -> int:
    """Bytes of a code of activations on the instruction set in use."""
    return library().activation_format(library().layout_for(type_number("Q8_0")))


class NativeMatrix:
    """A matrix of `qtype` packed by the library, in slabs that end at rows `slabs`. raw: uint8 [n_rows, row_bytes]"""

    def __init__(self, raw: Tensor, qtype: str, n_cols: int, slabs: Sequence[int] = ()) -> None:
        calls = library()
        layout = calls.layout_for(type_number(qtype))
        n_bytes = calls.packed_bytes(layout, len(raw), n_cols)
        assert n_bytes > 0
        self.memory = Guarded(n_bytes, 64)
        self.c = abi.Matrix(len(raw), n_cols, layout, 0, self.memory.address, n_bytes)
        edges = [0, *slabs, len(raw)]
        for first, stop in pairwise(edges):
            slab = Guarded(raw[first:stop].numel(), 1)
            slab.tensor(torch.uint8, stop - first, raw.shape[1])[:] = raw[first:stop]
            calls.pack(self.c, type_number(qtype), slab.address, first, stop - first)

    @property
    def activation_format(self) -> int:
        return library().activation_format(self.c.layout)

    def row(self, index: int) -> Tensor:
        out = Guarded(4 * self.c.n_cols)
        library().dequantize_row(self.c, index, out.address)
        return out.tensor(torch.float32, self.c.n_cols).clone()


class NativeValue:
    """An arena buffer of `rows` rows: zero beyond its width, poisoned within, every part ending at a guard page."""

    def __init__(self, rows: int, width: int, forms: int = 0, data: Tensor | None = None) -> None:
        stride = -(-width // 256) * 256
        self.parts = {
            "f32": Guarded(4 * rows * stride),
            "q8": Guarded(code_bytes() * rows * stride, 1),
            "q8_scale": Guarded(4 * rows * stride // 32),
            "q8_sum": Guarded(4 * rows * stride // 16),
            "bf16": Guarded(2 * rows * stride, 2),
        }
        addresses = {name: part.address for name, part in self.parts.items()}
        self.c = abi.Value(**addresses, width=width, stride=stride, formats=forms)
        self.f32 = self.parts["f32"].tensor(torch.float32, rows, stride)
        self.f32[:, width:] = 0
        if data is not None:
            self.f32[:, :width] = data

    def from_row(self, first: int) -> abi.Value:
        """The same memory from a row on. It is this object's."""
        stride = self.c.stride
        size = {"f32": 4 * stride, "q8_scale": stride // 8, "q8_sum": stride // 4, "bf16": 2 * stride}
        size["q8"] = code_bytes() * stride
        addresses = {name: self.parts[name].address + first * row_bytes for name, row_bytes in size.items()}
        return abi.Value(**addresses, width=self.c.width, stride=stride, formats=self.c.formats)

    @property
    def data(self) -> Tensor:
        assert not self.f32[:, self.c.width :].any(), "something was written beyond the width"
        return self.f32[:, : self.c.width].clone()


def run(instructions: Sequence[abi.Instruction], n_rows: int, threads: int = 1, **step: Any) -> None:
    """One step of `n_rows` rows of a program of these instructions. `step`: fields of a Step that differ from 0."""
    calls = library()
    array = (abi.Instruction * len(instructions))(*instructions)
    rows = {
        "position": int32s(range(n_rows)),
        "row_sequence": int32s([0] * n_rows),
        "token": int32s([0] * n_rows),
    }
    addresses = {name: ctypes.addressof(values) for name, values in rows.items()}
    sequence = (abi_step.SequenceC * 1)(abi_step.SequenceC(length=n_rows))
    fields = addresses | {"sequence": sequence, "n_rows": n_rows, "n_sequences": 1} | step
    pool = calls.threads_create(threads)
    plan = abi_step.ProgramC(array, None, len(instructions), 0)  # read by every run
    program = calls.program_create(plan, pool, n_rows)
    try:
        assert calls.program_run(program, abi_step.Step(**fields)) == abi.OK
    finally:
        calls.program_destroy(program)
        calls.threads_destroy(pool)


def linear_op(
    a: abi.Value, matrices: Sequence[NativeMatrix], outs: Sequence[abi.Value], act: str = "none", out_scale: float = 1.0
) -> abi.Linear:
    """A linear that makes the forms it reads. It points to all it is given."""
    op = abi.Linear(a=ctypes.pointer(a), n_weights=len(matrices), act=abi.ACTIVATIONS[act], out_scale=out_scale)
    for index, matrix in enumerate(matrices):
        op.weight[index] = ctypes.pointer(matrix.c)
        op.make_formats |= matrix.activation_format
    for index, out in enumerate(outs):
        op.out[index] = ctypes.pointer(out)
    return op


def linear(
    x: Tensor,
    matrices: Sequence[NativeMatrix],
    bias: Sequence[Tensor] = (),
    act: str = "none",
    out_scale: float = 1.0,
    residual: Tensor | None = None,
    threads: int = 1,
    scale: Sequence[Tensor] = (),
) -> list[Tensor]:
    """One linear over x [R, n_cols] -> f32 [R, n_rows] of each weight, or of the gated pair."""
    n_rows = len(x)
    a = NativeValue(n_rows, x.shape[1], data=x)
    outs = [NativeValue(n_rows, m.c.n_rows) for m in (matrices if act == "none" else matrices[:1])]
    op = linear_op(a.c, matrices, [out.c for out in outs], act, out_scale)
    kept = []
    for operand, vectors in ((op.bias, bias), (op.scale, scale)):
        for index, values in enumerate(vectors):
            kept.append(Guarded(4 * len(values)))
            kept[-1].tensor(torch.float32, len(values))[:] = values
            operand[index] = kept[-1].address
    rest = NativeValue(n_rows, residual.shape[1], data=residual) if residual is not None else None
    if rest is not None:
        op.residual = ctypes.pointer(rest.c)
    run([instruction(op)], n_rows, threads)
    return [out.data for out in outs]


def instruction(op: ctypes.Structure) -> abi.Instruction:
    """The arguments of any operation as an instruction of a program."""
    name = next(name for name, kind in abi.AnyOp._fields_ if kind is type(op))
    result = abi.Instruction(op=abi.OPS.index(name))
    setattr(result, name, op)
    return result

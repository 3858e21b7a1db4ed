"""Rows of numbers that the operations of a program leave for each other, in memory that is used again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from localrun.backends.gpu.q8 import Q8
from localrun.backends.gpu.scratch import coded_bytes, plain_bytes
from localrun.ops.instructions import (
    Attention,
    Embed,
    GatedDeltaRule,
    GeluMul,
    Instruction,
    Linear,
    LogitsOf,
    Norm,
    SelectiveScan,
    ShortConv,
)
from localrun.ops.interface import CacheLayer
from localrun.ops.layouts import Packed
from localrun.ops.program import Recorded


@dataclass(frozen=True, slots=True)
class Form:
    """How a value is kept: `width` numbers a row, as f32, quantised, or both."""

    width: int
    plain: bool
    coded: bool

    def nbytes(self, rows: int) -> int:
        return (plain_bytes(self.width) * self.plain + coded_bytes(self.width) * self.coded) * rows


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory for so many rows of a value, and less of them in smaller buckets."""

    form: Form
    plain: Tensor | None  # f32
    coded: Tensor | None  # bytes

    def x(self, rows: int) -> Tensor:
        """f32 [rows, width]"""
        assert self.plain is not None, "nothing reads these numbers as f32"
        return self.plain[: rows * self.form.width].view(rows, self.form.width)

    def q8(self, rows: int) -> Q8 | None:
        return None if self.coded is None else q8_within(self.coded, self.form.width, rows)


@dataclass(slots=True)
class Buffers:
    """Makes buffers of `max_rows`; one is used again as soon as nothing reads it."""

    max_rows: int
    device: torch.device
    nbytes: int = 0
    free: dict[Form, list[Buffer]] = field(default_factory=dict)

    def take(self, form: Form) -> Buffer:
        spare = self.free.get(form)
        return spare.pop() if spare else self.make(form)

    def give(self, buffer: Buffer) -> None:
        self.free.setdefault(buffer.form, []).append(buffer)

    def make(self, form: Form) -> Buffer:
        self.nbytes += form.nbytes(self.max_rows)
        plain = torch.zeros(self.max_rows * form.width, device=self.device) if form.plain else None
        n_coded = coded_bytes(form.width) * self.max_rows
        coded = torch.zeros(n_coded, dtype=torch.uint8, device=self.device) if form.coded else None
        return Buffer(form, plain, coded)


def place(
    recorded: Sequence[Recorded],
    layers: Sequence[CacheLayer],
    buffers: Buffers,
    reads_codes: Callable[[Packed], bool],
    in_bulk: bool = False,
) -> dict[int, Buffer]:
    """A buffer for every slot of a program. `reads_codes`: whether linears with a matrix read quantised rows; with
    `in_bulk` they may read any of them as f32, too."""
    placed: dict[int, Buffer] = {}
    plain, coded = slots_read(recorded, reads_codes)
    plain |= coded if in_bulk else set()
    for each in recorded[:-1]:  # the last one gives the logits
        widths = {name: placed[slot].form.width for name, slot in each.reads.items()}
        for slot, width in zip(each.results, result_widths(each.instruction, widths, layers), strict=True):
            placed[slot] = buffers.take(Form(width, slot in plain, slot in coded))
        for slot in each.dead:
            buffers.give(placed[slot])
    return placed


def slots_read(recorded: Sequence[Recorded], reads_codes: Callable[[Packed], bool]) -> tuple[set[int], set[int]]:
    """Slots that are wanted as f32, and those that some linear reads quantised: norms alone give these at once."""
    plain, coded = set[int](), set[int]()
    for each in recorded:
        op = each.instruction
        if not isinstance(op, Norm):
            plain.update(each.results)
        for name, slot in each.reads.items():
            forms = (
                {reads_codes(weight) for weight, _ in op.weights} if isinstance(op, Linear) and name == "a" else {False}
            )
            if True in forms:
                coded.add(slot)
            if False in forms:
                plain.add(slot)
    return plain, coded


def result_widths(op: Instruction, reads: dict[str, int], layers: Sequence[CacheLayer]) -> Sequence[int]:
    """Numbers a row of everything an instruction gives; `reads` are those of its operands."""
    if isinstance(op, Embed):
        return (op.weight.n_cols,)
    if isinstance(op, Linear):
        return [weight.n_rows for weight, _ in op.weights][: op.n_results]
    if isinstance(op, Attention):
        place = layers[op.layer]
        return (place.n_heads * (place.value_dim or place.head_dim),)
    if isinstance(op, ShortConv):
        return (reads["x"] // (3 if op.gated else 1),)
    if isinstance(op, GatedDeltaRule):
        return (op.n_value_heads * op.value_dim,)
    if isinstance(op, SelectiveScan):
        return (op.n_heads * op.head_dim,)
    assert not isinstance(op, LogitsOf)
    like = "gate" if isinstance(op, GeluMul) else next(name for name in ("x", "q", "a") if name in reads)
    return (reads[like],) * op.n_results


def q8_within(memory: Tensor, width: int, rows: int) -> Q8:
    """A Q8 of some rows at the beginning of `memory`, which has room for them."""
    n_codes, padded = -(-width // 64) * 64, -(-rows // 8) * 8
    codes, groups = memory[: rows * n_codes], memory[rows * n_codes :][: n_codes // 32 * padded * 8]
    return Q8(codes.view(torch.int8).view(rows, n_codes), groups.view(torch.int32).view(n_codes // 32, padded, 2))

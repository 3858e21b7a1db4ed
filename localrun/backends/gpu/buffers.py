"""Rows of numbers that the operations of a program leave for each other, in memory that is used again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import torch
from torch import Tensor

from localrun.backends.gpu.forms import Form, coded_bytes
from localrun.backends.gpu.q8 import Q8
from localrun.base.dataclass import dataclass
from localrun.ops.recording import Recorded


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory for rows of a value, with views of fewer rows for smaller buckets."""

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
class GpuBuffers:
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


def place(recorded: Sequence[Recorded], forms: Mapping[int, Form], buffers: GpuBuffers) -> dict[int, Buffer]:
    """A buffer for every slot of a program, but for the logits."""
    placed: dict[int, Buffer] = {}
    for each in recorded[:-1]:
        for slot in each.results:
            placed[slot] = buffers.take(forms[slot])
        for slot in each.dead:
            buffers.give(placed[slot])
    return placed


def q8_within(memory: Tensor, width: int, rows: int) -> Q8:
    """A Q8 of some rows at the beginning of `memory`, which has room for them."""
    n_codes, padded = -(-width // 64) * 64, -(-rows // 8) * 8
    codes, groups = memory[: rows * n_codes], memory[rows * n_codes :][: n_codes // 32 * padded * 8]
    return Q8(codes.view(torch.int8).view(rows, n_codes), groups.view(torch.int32).view(n_codes // 32, padded, 2))

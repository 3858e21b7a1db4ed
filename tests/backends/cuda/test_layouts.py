"""Layouts of a GPU's weights: every quant type, to the bit, in any slabs, within its memory."""

import numpy as np
import pytest
import torch
from localrun_testing.native_ops import sample
from torch import Tensor

from localrun.backends.gpu.layouts import GpuLayout
from localrun.backends.gpu.slabs import MOST_BYTES, WORKING_BYTES, SlabCopies, slab_in
from localrun.formats.quant import QUANT_TYPES
from localrun.ops import layouts
from localrun.ops.layouts import Packed, RowReader

COLUMNS = {1: (1, 7, 64, 100), 32: (32, 96, 288), 64: (64, 192, 320), 128: (128, 384), 256: (256, 768)}


def random_raw(qtype: str, n_rows: int, n_cols: int) -> Tensor:
    """Any bytes at all: every scale, subnormal, infinite or not a number."""
    shape = (n_rows, QUANT_TYPES[qtype].nbytes((1, n_cols)))
    raw = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(n_rows + n_cols))
    if qtype == "MXFP8":  # but for numbers so small that bf16 has fewer bits of them
        raw.view(-1, 33)[:, 0] |= 0x10
    if qtype.startswith("INT4_ZP"):  # but for zero points that no code has
        raw.view(-1, QUANT_TYPES[qtype].block_bytes)[:, 2] &= 15
    return raw


def packed_of(qtype: str, raw: Tensor, n_cols: int, granule: int = 1) -> Packed:
    rows = RowReader(qtype, len(raw), n_cols, lambda first, n: raw[first : first + n].numpy(), granule=granule)
    return GpuLayout().pack(rows)


def assert_same_bits(found: Tensor, expected: Tensor) -> None:
    assert found.dtype == torch.float32
    same = (found.view(torch.int32) == expected.view(torch.int32)) | (found.isnan() & expected.isnan())
    assert same.all(), int((~same).sum())


@pytest.mark.parametrize("qtype", QUANT_TYPES)
def test_rows_come_back_to_the_bit(qtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "SLAB_BYTES", 1)  # 16 rows at a time
    for n_rows in (1, 16, 37):
        for n_cols in COLUMNS[QUANT_TYPES[qtype].block_size]:
            raw = random_raw(qtype, n_rows, n_cols)
            packed = packed_of(qtype, raw, n_cols)
            expected = QUANT_TYPES[qtype].decode(raw.flatten(), (n_rows, n_cols))
            if qtype == "NF4_G64":
                expected = expected.bfloat16().float()
            assert_same_bits(packed.unpack(), expected)
            assert_same_bits(packed.unpack(n_rows // 3, n_rows // 2), expected[n_rows // 3 :][: n_rows // 2])
            wanted = torch.tensor([n_rows - 1, 0, n_rows // 2, 0])
            assert_same_bits(packed.unpack_rows(wanted), expected[wanted])


@pytest.mark.parametrize("qtype", ["Q4_0", "Q6_K", "Q4_K", "BF16"])
@pytest.mark.parametrize("slab_bytes", [1, 40_000, 1 << 20])
def test_slabs_and_granules_change_nothing(qtype: str, slab_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = sample(qtype, 150, 512)
    whole = packed_of(qtype, raw, 512)
    monkeypatch.setattr(layouts, "SLAB_BYTES", slab_bytes)
    for granule in (1, 24, 64):
        assert torch.equal(packed_of(qtype, raw, 512, granule).planes[0], whole.planes[0])


@pytest.mark.parametrize("qtype", QUANT_TYPES)
def test_memory_is_what_was_said(qtype: str) -> None:
    for n_rows in (1, 33):
        for n_cols in COLUMNS[QUANT_TYPES[qtype].block_size]:
            packed = packed_of(qtype, random_raw(qtype, n_rows, n_cols), n_cols)
            assert packed.nbytes == GpuLayout().nbytes(qtype, n_rows, n_cols)


def test_layouts_are_about_as_small_as_files() -> None:
    for qtype, most in [
        ("F32", 1), ("F16", 1), ("BF16", 1), ("Q4_0", 1), ("Q4_1", 1), ("Q5_0", 1), ("Q5_1", 1), ("Q8_0", 1),
        ("IQ4_NL", 1), ("MXFP4", 1), ("NVFP4", 1.12), ("Q4_K", 1.03), ("Q5_K", 1.03), ("Q6_K", 1.01), ("IQ4_XS", 1.04),
        ("Q3_K", 1.06), ("Q2_K", 1.2),
    ]:  # fmt: skip
        assert GpuLayout().nbytes(qtype, 1024, 2048) <= most * QUANT_TYPES[qtype].nbytes((1024, 2048)), qtype


def test_a_row_that_is_not_made_of_blocks_is_refused() -> None:
    with pytest.raises(Exception, match="multiple of 32"):
        GpuLayout().nbytes("Q4_0", 16, 33)


class LateDevice:
    """A device that has read a buffer only when it is waited for."""

    def __init__(self) -> None:
        self.under_way: list[tuple[Tensor, Tensor]] = []
        self.n_buffers = self.n_waits = 0

    def buffer(self, n: int) -> Tensor:
        self.n_buffers += 1
        return torch.zeros(n, dtype=torch.uint8)

    def copy(self, staged: Tensor) -> Tensor:
        self.under_way.append((staged, torch.zeros_like(staged)))
        return self.under_way[-1][1]

    def event(self) -> "LateEvent":
        return LateEvent(self)


class LateEvent:
    def __init__(self, device: LateDevice) -> None:
        self.device, self.before = device, 0

    def record(self) -> None:
        self.before = len(self.device.under_way)

    def synchronize(self) -> None:
        for staged, found in self.device.under_way[: self.before]:
            if not found.any():
                found.copy_(staged)
        self.device.n_waits += bool(self.before)


def test_slabs_arrive_whole_while_the_next_are_read() -> None:
    device = LateDevice()
    copies = SlabCopies(device.buffer, device.copy, device.event)
    slabs = [torch.full((1 + i % 3, 5), 1 + i, dtype=torch.uint8).numpy() for i in range(7)]
    found = []
    for slab in slabs:
        found.append(copies.send(slab.copy()))
    copies.next(1), copies.next(1)
    for sent, arrived in zip(slabs, found, strict=True):
        assert np.array_equal(arrived.numpy(), sent)
    assert device.n_waits == 7, "one wait for each buffer that is used again, none for the first two"
    assert device.n_buffers == 4, "two, and one more each where a slab is larger than those before"


def test_slabs_leave_room_for_packing() -> None:
    assert slab_in(24 << 30) == MOST_BYTES
    assert slab_in(0) == layouts.SLAB_BYTES
    assert WORKING_BYTES * slab_in(512 << 20) <= 256 << 20

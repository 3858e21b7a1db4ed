"""Layouts of the CPU library: every quant type, to the bit, in any slabs, within its memory."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
import torch
from localrun_testing.native_ops import (
    NATIVE_TYPES,
    WITHOUT_LAYOUT,
    Guarded,
    NativeMatrix,
    library,
    sample,
    type_number,
)

from localrun.backends.cpu import abi
from localrun.backends.cpu.bindings import CpuCalls
from localrun.backends.cpu.layout import ALIGNMENT, CHUNK_BYTES, CpuLayout, WeightMemory
from localrun.formats.quant import BY_GGUF_ID, QUANT_TYPES
from localrun.ops.layouts import RowReader

COLUMNS = {1: (1, 7, 32, 100), 32: (32, 96, 288), 64: (64, 192, 320), 128: (128, 384), 256: (256, 768)}
BAD_ARGUMENT = 1


def random_raw(qtype: str, n_rows: int, n_cols: int) -> torch.Tensor:
    """Any bytes at all: every scale, subnormal, infinite or not a number."""
    shape = (n_rows, QUANT_TYPES[qtype].nbytes((1, n_cols)))
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(n_rows + n_cols))


@pytest.mark.parametrize("qtype", NATIVE_TYPES)
def test_rows_come_back_to_the_bit(qtype: str) -> None:
    for n_rows in (1, 17, 33):
        for n_cols in COLUMNS[QUANT_TYPES[qtype].block_size]:
            raw = random_raw(qtype, n_rows, n_cols)
            matrix = NativeMatrix(raw, qtype, n_cols, slabs=() if n_rows == 1 else (3, n_rows // 2))
            found = torch.stack([matrix.row(i) for i in range(n_rows)])
            expected = QUANT_TYPES[qtype].decode(raw.flatten(), (n_rows, n_cols))
            same = (found.view(torch.int32) == expected.view(torch.int32)) | (found.isnan() & expected.isnan())
            assert same.all(), (n_rows, n_cols, int((~same).sum()))


def test_few_types_have_no_layout() -> None:
    calls = library()
    assert [name for name in WITHOUT_LAYOUT if calls.layout_for(type_number(name)) >= 0] == []


@pytest.mark.parametrize("qtype", ["Q4_0", "Q5_K", "Q6_K", "BF16"])
def test_slabs_do_not_meet(qtype: str) -> None:
    """Single rows packed by many threads in any order give the bytes that one call gives."""
    raw = sample(qtype, 40, 512)
    whole = NativeMatrix(raw, qtype, 512)
    other = NativeMatrix(raw, qtype, 512)
    other.memory.tensor(torch.uint8, other.memory.n_bytes)[:] = 0xEE
    with ThreadPoolExecutor(3) as threads:
        rows = [37, *range(0, 37, 2), *range(1, 37, 2), 38, 39]
        list(threads.map(lambda r: library().pack(other.c, type_number(qtype), raw[r].data_ptr(), r, 1), rows))
    for row in range(40):
        assert torch.equal(other.row(row), whole.row(row))
    spare = whole.memory.tensor(torch.uint8, whole.memory.n_bytes) != other.memory.tensor(torch.uint8, -1)
    assert spare.float().mean() < 0.03  # only the gaps that round blocks up to 64 bytes


def test_rows_behind_the_last_are_zero() -> None:
    for qtype in ("Q4_0", "F32", "Q6_K"):
        raw = sample(qtype, 17, 256)
        matrix = NativeMatrix(raw, qtype, 256)
        matrix.c.n_rows = 32
        for row in range(17, 32):
            assert not matrix.row(row).any()


def test_layouts_are_as_small_as_the_file_says() -> None:
    """Within 3 % for the types people use; a row of 896 columns is not padded to 1024, and 6-bit scales stay so."""
    calls = library()
    for qtype in ("Q4_K", "Q5_K"):
        assert calls.packed_bytes(calls.layout_for(type_number(qtype)), 16, 768) == QUANT_TYPES[qtype].nbytes((16, 768))
    for qtype, n_cols in [("Q4_0", 896), ("Q8_0", 896), ("Q5_0", 896), ("F16", 896), ("Q6_K", 2048)]:
        packed = calls.packed_bytes(calls.layout_for(type_number(qtype)), 1024, n_cols)
        assert packed <= 1.03 * QUANT_TYPES[qtype].nbytes((1024, n_cols))


def test_blocks_are_what_the_formats_say() -> None:
    """Block sizes stand in repack.cpp and in formats/quant.py."""
    calls = library()
    held = {number: qtype for number, qtype in BY_GGUF_ID.items() if calls.layout_for(number) >= 0}
    assert len(held) > 30
    for number, qtype in held.items():
        assert calls.c.lr_row_bytes(number, 768) == qtype.nbytes((1, 768)), qtype.name


def test_what_no_layout_holds_is_refused() -> None:
    calls = library()
    assert calls.layout_for(999) == -1
    assert calls.layout_name(-1) == calls.layout_name(999) == ""
    q4_0, q4_k = calls.layout_for(2), calls.layout_for(12)
    for layout, n_rows, n_cols in [
        (q4_0, 16, 33), (q4_k, 16, 128), (q4_0, 0, 32), (q4_0, 16, 0), (q4_0, 16, 1 << 20), (-1, 16, 32), (99, 16, 32),
    ]:  # fmt: skip
        assert calls.packed_bytes(layout, n_rows, n_cols) == -1


def test_packing_outside_the_matrix_is_refused() -> None:
    raw = sample("Q4_0", 16, 64)
    matrix = NativeMatrix(raw, "Q4_0", 64)
    pack, unpack = library().c.lr_pack, library().c.lr_dequantize_row
    out = Guarded(4 * 64)
    for gguf_type, first, n_rows in [(2, 1, 16), (2, -1, 1), (2, 0, -1), (8, 0, 16), (999, 0, 16), (2, 2**31 - 1, 1)]:
        assert pack(ctypes.byref(matrix.c), gguf_type, raw.data_ptr(), first, n_rows) == BAD_ARGUMENT
    for row in (-1, 16):
        assert unpack(ctypes.byref(matrix.c), row, out.address) == BAD_ARGUMENT
    wrong = abi.Matrix(16, 64, matrix.c.layout, 0, matrix.c.data, matrix.c.n_bytes - 1)
    assert unpack(ctypes.byref(wrong), 0, out.address) == BAD_ARGUMENT


def test_weights_lie_apart_and_go_with_the_last_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: CpuCalls = library()
    released: list[int] = []
    monkeypatch.setattr(calls, "release", lambda address, n_bytes: released.append(n_bytes))
    memory = WeightMemory(calls)
    sizes = [1, 100, 64, CHUNK_BYTES - 1000, 4096, CHUNK_BYTES + 1]
    taken = [memory.take(n) for n in sizes]
    spans = sorted((part.ctypes.data, part.ctypes.data + len(part)) for part in taken)
    assert [len(part) for part in taken] == sizes
    assert all(start % ALIGNMENT == 0 for start, _ in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    del memory
    while taken:
        assert len(released) < 3
        taken.pop(0)
    assert sorted(released) == [CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES + 1]


@pytest.mark.parametrize("nodes", [1, 2])
def test_where_memory_has_several_nodes_the_librarys_threads_touch_it_first(
    nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page of a matrix before anything is packed into it, and the rows are the same."""
    touched: list[tuple[int, int]] = []
    calls = library()
    monkeypatch.setattr("localrun.backends.cpu.layout.memory_nodes", lambda: [[0]] * nodes)
    monkeypatch.setattr(
        calls, "first_touch", lambda threads, address, n_bytes: touched.append((address, n_bytes)) if threads else None
    )
    layout, raw = CpuLayout(calls, 2), sample("Q4_0", 300, 512)
    with layout.packing():
        packed = layout.pack(RowReader("Q4_0", 300, 512, lambda first, n: raw[first : first + n].numpy()))
    (plane,) = packed.planes
    assert touched == [(plane.ctypes.data, plane.nbytes)] * (nodes - 1)
    assert torch.equal(packed.unpack(), QUANT_TYPES["Q4_0"].decode(raw.flatten(), (300, 512)))

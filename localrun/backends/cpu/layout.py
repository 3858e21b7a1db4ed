"""Weights in the native library's layouts: read and packed by several threads. Torch-free."""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from localrun.backends.cpu import abi
from localrun.backends.cpu.bindings import CpuCalls, start_threads
from localrun.backends.cpu.low_rank import as_fp16, b_bytes, by_groups
from localrun.base.errors import ModelFileError
from localrun.base.processors import memory_nodes
from localrun.formats.decode_iq import grid_table
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.layouts import Packed, RowReader

if TYPE_CHECKING:
    import torch
    from torch import Tensor

GRIDS = {name: name for name in ("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")} | {"IQ1_M": "IQ1_S"}
LANES = 16  # rows a layout interleaves
CHUNK_BYTES = 256 << 20  # of address space: what is never written to takes no memory
ALIGNMENT = 64
SLABS_AHEAD = 4  # a thread: enough that none waits, few enough that what went wrong is seen soon


class WeightMemory:
    """Room for matrices side by side in few large pieces; a piece lives as long as one of its matrices."""

    def __init__(self, calls: CpuCalls) -> None:
        self.calls = calls
        self.free = np.empty(0, np.uint8)

    def take(self, n_bytes: int) -> np.ndarray:
        """uint8 [n_bytes], aligned. Raises DoesNotFitError."""
        if n_bytes > len(self.free):
            self.free = self.piece(max(n_bytes, CHUNK_BYTES))
        taken, self.free = self.free[:n_bytes], self.free[-(-n_bytes // ALIGNMENT) * ALIGNMENT :]
        return taken

    def piece(self, n_bytes: int) -> np.ndarray:
        address = self.calls.reserve(n_bytes)
        memory = (ctypes.c_uint8 * n_bytes).from_address(address)
        weakref.finalize(memory, self.calls.release, address, n_bytes)
        return np.ctypeslib.as_array(memory)


class CpuLayout:
    """The library's layouts, one for every quant type. `packing` reads and packs slabs of all matrices side by side."""

    name = "cpu"
    reads_side_by_side = True

    def __init__(self, calls: CpuCalls, n_threads: int) -> None:
        self.calls, self.n_threads = calls, n_threads
        self.memory = WeightMemory(calls)
        self.memory_of_a, self.memory_of_b = WeightMemory(calls), WeightMemory(calls)  # of adapters, as steps read them
        self.threads: ThreadPoolExecutor | None = None  # while packing
        self.slabs: deque[Future[None]] = deque()  # under way, in order
        self.touching: int | None = None  # the library's threads, while packing for several memory nodes

    def layout_of(self, qtype: str) -> int:
        return self.calls.layout_for(type_number(qtype))

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return self.calls.packed_bytes(self.layout_of(qtype), n_rows, n_cols)

    @contextmanager
    def packing(self) -> Iterator[None]:
        threads = self.threads = ThreadPoolExecutor(self.n_threads)
        if len(memory_nodes()) > 1:
            self.touching = start_threads(self.calls, self.n_threads)
        try:
            yield
            self.wait(0)
        finally:
            threads.shutdown(cancel_futures=True)
            self.threads, self.slabs = None, deque()
            if self.touching is not None:
                self.calls.threads_destroy(self.touching)
                self.touching = None

    def wait(self, n_left: int) -> None:
        """Wait until at most this many slabs are under way; raises the error of one that failed."""
        while len(self.slabs) > n_left:
            self.slabs.popleft().result()

    def pack(self, rows: RowReader, memory: WeightMemory | None = None) -> Packed:
        n_bytes = self.nbytes(rows.qtype, rows.n_rows, rows.n_cols)
        if n_bytes < 0:
            raise ModelFileError("BAD_ROW", f"a {rows.qtype} matrix cannot have rows of {rows.n_cols} columns")
        gguf_type = self.file_type(rows.qtype)
        if rows.file is not None:
            plane = np.frombuffer(rows.file.mapped(lambda: self.pieces(rows, gguf_type), rows.in_parts), np.uint8)
            return Packed(self, rows.qtype, rows.n_rows, rows.n_cols, (plane,), mapped=True)
        if rows.kept is not None and rows.kept.found is not None:
            return Packed(self, rows.qtype, rows.n_rows, rows.n_cols, (self.mapped(rows.kept.found),))
        plane = (memory or self.memory).take(n_bytes)
        if self.touching is not None:  # a page lies on the node of the thread that touches it first
            self.calls.first_touch(self.touching, plane.ctypes.data, n_bytes)
        packed = Packed(self, rows.qtype, rows.n_rows, rows.n_cols, (plane,))
        step = rows.slab_rows(multiple=LANES)

        def pack_slab(first: int) -> None:
            raw = np.ascontiguousarray(rows.read(first, min(step, rows.n_rows - first)))
            self.calls.pack(self.matrix(packed), gguf_type, raw.ctypes.data, first, len(raw))

        for first in range(0, rows.n_rows, step):
            if self.threads is None:
                pack_slab(first)
            else:
                self.wait(SLABS_AHEAD * self.n_threads)
                self.slabs.append(self.threads.submit(pack_slab, first))
        if rows.kept is not None:
            rows.kept.packed = plane.data
        return packed

    def mapped(self, found: memoryview) -> np.ndarray:
        """A matrix that an earlier start left on the disk; its pages come while other matrices are packed."""
        plane = np.frombuffer(found, np.uint8)
        if self.threads is not None:
            self.slabs.append(self.threads.submit(self.calls.populate, plane.ctypes.data, plane.nbytes))
        return plane

    def pieces(self, rows: RowReader, gguf_type: int) -> Iterator[memoryview]:
        """A packed matrix from its beginning to its end, as bytes; the next pieces are packed while one is used."""
        step = rows.slab_rows(multiple=LANES)

        def piece(first: int) -> memoryview:
            raw = np.ascontiguousarray(rows.read(first, min(step, rows.n_rows - first)))
            packed = np.zeros(self.nbytes(rows.qtype, len(raw), rows.n_cols), np.uint8)
            part = Packed(self, rows.qtype, len(raw), rows.n_cols, (packed,))
            self.calls.pack(self.matrix(part), gguf_type, raw.ctypes.data, 0, len(raw))
            return packed.data

        assert self.threads is not None, "while packing"
        ahead: deque[Future[memoryview]] = deque()
        for first in range(0, rows.n_rows, step):
            ahead.append(self.threads.submit(piece, first))
            if len(ahead) > SLABS_AHEAD * self.n_threads:
                yield ahead.popleft().result()
        yield from (one.result() for one in ahead)

    def file_type(self, qtype: str) -> int:
        """The number of a quant type, whose blocks the library can read from now on."""
        number = type_number(qtype)
        if qtype in GRIDS:
            self.calls.set_grid(number, grid_table(GRIDS[qtype]).astype(np.int8).tobytes())
        return number

    def vector(self, values: np.ndarray, device: torch.device | None) -> np.ndarray:
        return values

    def low_rank_bytes(self, n_out: int, n_in: int, rank: int) -> int:
        return self.nbytes("F16", rank, n_in) + b_bytes(n_out, rank)

    def low_rank(self, a: np.ndarray, b: np.ndarray, device: torch.device | None) -> tuple[Packed, Packed, float]:
        (a, factor_a), (b, factor_b) = as_fp16(a), as_fp16(b)
        raw = a.view(np.uint8).reshape(len(a), -1)
        (rank, n_in), n_out = a.shape, len(b)
        packed_a = self.pack(RowReader("F16", rank, n_in, lambda first, n: raw[first : first + n]), self.memory_of_a)
        plane = self.memory_of_b.take(b_bytes(n_out, rank))
        plane[:] = np.ascontiguousarray(by_groups(b)).view(np.uint8).ravel()
        return packed_a, Packed(self, "F16", n_out, rank, (plane,)), 1.0 / (factor_a * factor_b)

    def unpack(self, packed: Packed, rows: slice | Tensor) -> Tensor:
        import torch

        numbers = range(packed.n_rows)[rows] if isinstance(rows, slice) else rows.tolist()
        out = torch.empty(len(numbers), packed.n_cols)
        matrix = self.matrix(packed)
        for place, number in enumerate(numbers):
            self.calls.dequantize_row(matrix, number, out[place].data_ptr())
        return out

    def matrix(self, packed: Packed) -> abi.Matrix:
        """The C view of a packed matrix; valid while `packed` lives."""
        (plane,) = packed.planes
        return abi.Matrix(
            packed.n_rows, packed.n_cols, self.layout_of(packed.qtype), 0, plane.ctypes.data, plane.nbytes
        )

    def activation_format(self, packed: Packed) -> int:
        """The format of activations that a linear on this matrix reads."""
        return self.calls.activation_format(self.layout_of(packed.qtype))


def type_number(qtype: str) -> int:
    number = QUANT_TYPES[qtype].number
    assert number is not None, f"the library knows no {qtype}"
    return number

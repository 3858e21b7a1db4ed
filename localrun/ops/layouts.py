"""Layouts of weights in memory, each a row of a table. Torch is imported when a layout that needs it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from math import lcm
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from localrun.base.dataclass import dataclass
from localrun.formats.quant import QUANT_TYPES

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor


SLAB_BYTES = 1 << 20  # of a file read, and packed, at a time
Vector: TypeAlias = Any  # of f32 numbers, as a backend takes it: an ndarray for the native library, else a Tensor


class MatrixFile(Protocol):
    """A packed matrix on disk: storage/packed_file.py."""

    def mapped(self, pack: Callable[[], Iterator[memoryview]], in_parts: bool = False) -> memoryview:
        """The matrix, uint8 [n_bytes]; where it is not there, what `pack` gives piece by piece is written first.

        `in_parts`: a step reads stretches of it that it names before.
        """
        ...


@dataclass(slots=True)
class KeptMatrix:
    """A packed matrix in memory that is kept on disk for the next start: found there, or packed now. uint8 [n_bytes]"""

    found: memoryview | None = None
    packed: memoryview | None = None


@dataclass(frozen=True, slots=True)
class RowReader:
    """The rows of a matrix as a file has them: `read(first, n)` gives uint8 [n, row_bytes]; `device` is for the result.

    first and n have to be multiples of `granule` (but for the end): rows are reordered within such groups.
    """

    qtype: str
    n_rows: int
    n_cols: int
    read: Callable[[int, int], np.ndarray]
    device: torch.device | None = None  # None: main memory
    granule: int = 1
    in_parts: bool = False  # a step uses some of the rows: those of experts, or of tokens
    file: MatrixFile | None = None  # where the packed matrix stays, and is mapped from; None: it is held in memory
    kept: KeptMatrix | None = None  # where one that is held in memory may be found, and is left for the next start

    def slab_rows(self, multiple: int = 1, n_bytes: int | None = None) -> int:
        """Rows of a slab of about `n_bytes`, or SLAB_BYTES, a multiple of `multiple` and of the granule."""
        step, n_bytes = lcm(multiple, self.granule), n_bytes or SLAB_BYTES
        return max(1, n_bytes // QUANT_TYPES[self.qtype].nbytes((self.n_cols,)) // step) * step


@dataclass(frozen=True, slots=True)
class Packed:
    """A weight matrix [n_rows, n_cols] in some layout. What its planes mean is the layout's affair."""

    layout: Layout
    qtype: str
    n_rows: int
    n_cols: int
    planes: tuple[Any, ...]  # arrays or tensors
    mapped: bool = False  # it stays in a file

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without those that stay in a file."""
        return 0 if self.mapped else sum(plane.nbytes for plane in self.planes)

    def unpack(self, first: int = 0, n_rows: int | None = None) -> Tensor:
        """Rows first … first+n_rows as f32 [n_rows, n_cols]; a view where the layout is already f32."""
        return self.layout.unpack(self, slice(first, self.n_rows if n_rows is None else first + n_rows))

    def unpack_rows(self, index: Tensor) -> Tensor:
        """The rows at `index` (int64 [n]) as f32 [n, n_cols]: embedding lookup, tied or not."""
        return self.layout.unpack(self, index)


class Layout(Protocol):
    """One way to hold matrices."""

    @property
    def name(self) -> str: ...
    @property
    def reads_side_by_side(self) -> bool:
        """Whether several threads read rows at once while it packs."""
        ...

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        """Exact bytes of a matrix of that file type in this layout."""
        ...

    def packing(self) -> AbstractContextManager[None]:
        """While this is open, what `pack` gives may be filled later; when it closes, all of it is there."""
        ...

    def pack(self, rows: RowReader) -> Packed:
        """Read a matrix slab by slab into this layout; the peak is the result and one slab a thread."""
        ...

    def vector(self, values: np.ndarray, device: torch.device | None) -> Vector:
        """A norm's or a bias's f32 numbers as the operations on this layout take them."""
        ...

    def low_rank_bytes(self, n_out: int, n_in: int, rank: int) -> int:
        """Exact bytes of the two matrices that an adapter adds to one."""
        ...

    def low_rank(self, a: np.ndarray, b: np.ndarray, device: torch.device | None) -> tuple[Packed, Packed, float]:
        """The two matrices of f32 numbers, A [rank, n_in] and B [n_out, rank], and the factor that their products are
        to be multiplied by."""
        ...

    def unpack(self, packed: Packed, rows: slice | Tensor) -> Tensor:
        """Some rows as f32 [n, n_cols], exactly what the file's own decoder gives."""
        ...


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The file's own blocks, decoded each time they are used: small and slow."""

    name: str = "file"
    reads_side_by_side: bool = False

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return QUANT_TYPES[qtype].nbytes((n_rows, n_cols))

    def packing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def pack(self, rows: RowReader) -> Packed:
        raw = on_device(rows.read(0, rows.n_rows), rows.device)
        return Packed(self, rows.qtype, rows.n_rows, rows.n_cols, (raw,))

    def vector(self, values: np.ndarray, device: torch.device | None) -> Vector:
        return on_device(values, device)

    def low_rank_bytes(self, n_out: int, n_in: int, rank: int) -> int:
        return 4 * rank * (n_out + n_in)

    def low_rank(self, a: np.ndarray, b: np.ndarray, device: torch.device | None) -> tuple[Packed, Packed, float]:
        return as_f32(a, device), as_f32(b, device), 1.0

    def unpack(self, packed: Packed, rows: slice | Tensor) -> Tensor:
        raw = packed.planes[0][rows]
        return QUANT_TYPES[packed.qtype].decode(raw, (raw.shape[0], packed.n_cols))


@dataclass(frozen=True, slots=True)
class MappedLayout(FileLayout):
    """Rows that stay in the file and are read when they are looked up; the plane is a view of it, uint8 [n_rows, …]."""

    name: str = "mapped"

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return 0

    def unpack(self, packed: Packed, rows: slice | Tensor) -> Tensor:
        wanted, device = (rows, None) if isinstance(rows, slice) else (rows.cpu().numpy(), rows.device)
        raw = on_device(packed.planes[0][wanted].copy(), device)
        return QUANT_TYPES[packed.qtype].decode(raw, (raw.shape[0], packed.n_cols))


@dataclass(frozen=True, slots=True)
class DenseLayout:
    """Decoded once to f32: the fastest the reference can do, at four bytes a weight."""

    name: str = "f32"
    reads_side_by_side: bool = False

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return 4 * n_rows * n_cols

    def packing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def pack(self, rows: RowReader) -> Packed:
        import torch

        weights = torch.empty(rows.n_rows, rows.n_cols, device=rows.device)
        step = rows.slab_rows()
        for first in range(0, rows.n_rows, step):
            raw = on_device(rows.read(first, min(step, rows.n_rows - first)), rows.device)
            weights[first : first + len(raw)] = QUANT_TYPES[rows.qtype].decode(raw, (len(raw), rows.n_cols))
        return Packed(self, rows.qtype, rows.n_rows, rows.n_cols, (weights,))

    def vector(self, values: np.ndarray, device: torch.device | None) -> Vector:
        return on_device(values, device)

    def low_rank_bytes(self, n_out: int, n_in: int, rank: int) -> int:
        return 4 * rank * (n_out + n_in)

    def low_rank(self, a: np.ndarray, b: np.ndarray, device: torch.device | None) -> tuple[Packed, Packed, float]:
        return as_f32(a, device), as_f32(b, device), 1.0

    def unpack(self, packed: Packed, rows: slice | Tensor) -> Tensor:
        weights: Tensor = packed.planes[0][rows]
        return weights


def as_f32(values: np.ndarray, device: torch.device | None) -> Packed:
    """A matrix of f32 numbers, [n_rows, n_cols]."""
    n_rows, n_cols = values.shape
    return Packed(F32, "F32", n_rows, n_cols, (on_device(values, device),))


def on_device(values: np.ndarray, device: torch.device | None) -> Tensor:
    """`values` as a tensor: in main memory the same bytes, elsewhere a copy."""
    import torch

    tensor: Tensor = torch.from_numpy(values).to(device or "cpu")
    return tensor


FILE = FileLayout()
MAPPED = MappedLayout()
F32 = DenseLayout()

"""How weight matrices lie in memory. A layout is a row of a table; torch is imported when one is used."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from localrun.formats.quant import QUANT_TYPES

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Packed:
    """A weight matrix [n_rows, n_cols] in some layout. What its planes mean is the layout's affair."""

    layout: "Layout"
    qtype: str
    n_rows: int
    n_cols: int
    planes: "tuple[Tensor, ...]"

    @property
    def nbytes(self) -> int:
        return sum(plane.nbytes for plane in self.planes)

    def unpack(self, first: int = 0, n_rows: int | None = None) -> "Tensor":
        """Rows first … first+n_rows as f32 [n_rows, n_cols]; a view where the layout is already f32."""
        return self.layout.unpack(self, slice(first, self.n_rows if n_rows is None else first + n_rows))

    def unpack_rows(self, index: "Tensor") -> "Tensor":
        """The rows at `index` (int64 [n]) as f32 [n, n_cols]: embedding lookup, tied or not."""
        return self.layout.unpack(self, index)


class Layout(Protocol):
    """One way to hold matrices."""

    @property
    def name(self) -> str: ...

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        """Exact bytes of a matrix of that file type in this layout."""
        ...

    def pack(self, raw: "Tensor", qtype: str, n_cols: int) -> Packed:
        """Take over the rows of a file: uint8 [n_rows, row_bytes], on the device that will hold them."""
        ...

    def unpack(self, packed: Packed, rows: "slice | Tensor") -> "Tensor":
        """Some rows as f32 [n, n_cols], exactly what the file's own decoder gives."""
        ...


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The file's own blocks, decoded each time they are used: small and slow."""

    name: str = "file"

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return QUANT_TYPES[qtype].nbytes((n_rows, n_cols))

    def pack(self, raw: "Tensor", qtype: str, n_cols: int) -> Packed:
        return Packed(self, qtype, raw.shape[0], n_cols, (raw,))

    def unpack(self, packed: Packed, rows: "slice | Tensor") -> "Tensor":
        raw = packed.planes[0][rows]
        return QUANT_TYPES[packed.qtype].decode(raw, (raw.shape[0], packed.n_cols))


@dataclass(frozen=True, slots=True)
class DenseLayout:
    """Decoded once to f32: the fastest the reference can do, at four bytes a weight."""

    name: str = "f32"

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return 4 * n_rows * n_cols

    def pack(self, raw: "Tensor", qtype: str, n_cols: int) -> Packed:
        n_rows = raw.shape[0]
        return Packed(self, qtype, n_rows, n_cols, (QUANT_TYPES[qtype].decode(raw, (n_rows, n_cols)),))

    def unpack(self, packed: Packed, rows: "slice | Tensor") -> "Tensor":
        return packed.planes[0][rows]


FILE = FileLayout()
F32 = DenseLayout()

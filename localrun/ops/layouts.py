"""How weight matrices lie in memory. A layout is a row of a table; torch is imported when one is used."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localrun.formats.quant import QUANT_TYPES

if TYPE_CHECKING:
    from torch import Tensor

PACKED_VERSION = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """How a Packed matrix is held: `pack` builds its planes from a file's bytes, `unpack` gives f32 rows back."""

    name: str
    bytes_per_row: Callable[[str, int], int]  # (qtype, n_cols)
    pack: Callable[["Tensor", str, int], "tuple[Tensor, ...]"]  # (uint8 [n_rows, row_bytes], qtype, n_cols)
    unpack: Callable[["tuple[Tensor, ...]", str, int], "Tensor"]  # (planes of some rows, qtype, n_cols) -> f32


@dataclass(frozen=True, slots=True)
class Packed:
    """A weight matrix [n_rows, n_cols]; every plane has n_rows rows, so rows can be taken from any layout."""

    layout: Layout
    qtype: str
    n_rows: int
    n_cols: int
    planes: "tuple[Tensor, ...]"

    @property
    def nbytes(self) -> int:
        return sum(plane.nbytes for plane in self.planes)

    def unpack(self, first: int = 0, n_rows: int | None = None) -> "Tensor":
        """Rows first … first+n_rows as f32 [n_rows, n_cols]; a view where the layout is already f32."""
        stop = self.n_rows if n_rows is None else first + n_rows
        return self.layout.unpack(tuple(plane[first:stop] for plane in self.planes), self.qtype, self.n_cols)

    def unpack_rows(self, index: "Tensor") -> "Tensor":
        """The rows at `index` (int64 [n]) as f32 [n, n_cols]: embedding lookup, tied or not."""
        return self.layout.unpack(tuple(plane[index] for plane in self.planes), self.qtype, self.n_cols)


def _decode(raw: "Tensor", qtype: str, n_cols: int) -> "Tensor":
    return QUANT_TYPES[qtype].decode(raw, (raw.shape[0], n_cols))


FILE = Layout(
    "file",  # the file's own blocks, decoded each time they are used: small and slow
    bytes_per_row=lambda qtype, n_cols: QUANT_TYPES[qtype].nbytes((n_cols,)),
    pack=lambda raw, qtype, n_cols: (raw,),
    unpack=lambda planes, qtype, n_cols: _decode(planes[0], qtype, n_cols),
)
F32 = Layout(
    "f32",  # decoded once: the fastest the reference can do, four bytes a weight
    bytes_per_row=lambda qtype, n_cols: 4 * n_cols,
    pack=lambda raw, qtype, n_cols: (_decode(raw, qtype, n_cols),),
    unpack=lambda planes, qtype, n_cols: planes[0],
)
LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (FILE, F32)}


def pack(raw: "Tensor", qtype: str, n_cols: int, layout: Layout) -> Packed:
    """Put a matrix into `layout`. raw: uint8 [n_rows, row_bytes] on the device that will hold it."""
    return Packed(layout, qtype, raw.shape[0], n_cols, layout.pack(raw, qtype, n_cols))

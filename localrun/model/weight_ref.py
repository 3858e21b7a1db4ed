"""Place of one weight in a file, checked against the file. Torch-free."""

from collections.abc import Mapping

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorSource, factor_name

FLOAT_TYPES = ("F32", "F16", "BF16", "F64")
MATRIX_TYPES = (*FLOAT_TYPES, "F8_E4M3")  # those of a number an element that matrices may be of


@dataclass(frozen=True, slots=True)
class WeightRef:
    """One weight of the model: rows (elements of a vector) first_row … first_row+shape[0] of the tensor `name`.

    `interleaved`: heads whose rows pair dims (2j, 2j+1) and must be put into the pairing (j, j + dims/2), given as
    (n_heads, rotated dims). `offset` is added to a norm's values. For a mixture, `shape` is that of `n_experts` equal
    parts one after the other, `n_used` of which a token uses. The file stores them in a tensor each (`names`, of which
    `name` is the first), or in one [n_experts, rows, columns], whose rows may belong to other weights too: then a part
    is the rows from `first_row` on, or every `every`-th of them.
    """

    name: str
    shape: tuple[int, ...]
    first_row: int = 0
    interleaved: tuple[int, int] | None = None
    offset: float = 0.0
    names: tuple[str, ...] = ()
    n_experts: int = 1
    n_used: int = 1
    file_shape: tuple[int, ...] = ()  # of each tensor, where it is not `shape`
    every: int = 1
    transposed: bool = False  # the tensor is [n_experts, columns, rows] in the file
    starts: tuple[int, ...] = ()  # rows there with which equal stretches of ours begin, where they lie apart
    factor: float = 1.0  # that the numbers of a vector are multiplied by
    mapped: bool = False  # stays in the file: a step reads the rows it needs
    is_order: bool = False  # a vector of places, int32
    is_log: bool = False  # the file has the logarithm of the vector times -1
    part: int | None = None  # of `n_parts` equal ones of the columns in the file
    n_parts: int = 2

    @property
    def is_number(self) -> bool:
        """Whether it is a single number, which becomes an operand."""
        return self.shape == (1,)

    @property
    def tensors(self) -> tuple[str, ...]:
        return self.names or (self.name,)

    @property
    def part_rows(self) -> int:
        """Rows of the weight that are contiguous in the file."""
        if self.starts:
            return self.shape[0] // len(self.starts)
        of_expert = self.shape[0] // self.n_experts
        whole = len(self.file_shape) == 3 and self.file_shape[1] == of_expert and not self.transposed
        return self.shape[0] if whole else of_expert

    def place(self, part: int) -> tuple[str, int]:
        """The tensor of a part, and the file's row at which its matrix begins."""
        if self.names:
            return self.names[part], 0
        if self.starts:
            return self.name, self.starts[part]
        return self.name, part * self.file_shape[1] if part else 0


@dataclass(frozen=True, slots=True)
class RowRanges:
    """Place of a weight in a tensor of several: equal ranges of rows that begin at `starts` of `n_rows`."""

    tensor: str  # by our name
    starts: tuple[int, ...]
    n_rows: int


def gather_refs(source: TensorSource, refs: Mapping[str, WeightRef]) -> dict[str, WeightRef]:
    """Orders of columns of joined matrices that are sorted by group; tables, and those of a mixture, cannot be."""
    orders = {info.name for info in source.tensors.values() if info.is_joined and info.qtype == "I32"}
    found = {}
    for name, ref in refs.items():
        order = ref.name.removesuffix("weight") + "order"
        if order in orders and ref.n_experts == 1 and not any(part in name for part in ("shared", "embed", "output")):
            found[f"{name}.gather"] = WeightRef(order, ref.shape[1:], is_order=True)
    return found


def scale_refs(source: TensorSource, refs: Mapping[str, WeightRef]) -> dict[str, WeightRef]:
    """Scales for products of matrices, as GGUFs of NVFP4 and joined tensors have them.

    One number, or one for each expert. A router has none; some architectures use such names for other tensors.
    """
    free = source.tensors.keys() - {tensor for ref in refs.values() for tensor in ref.tensors}
    found = {}
    for name, ref in refs.items():
        scales = tuple(map(factor_name, ref.tensors))
        if len(ref.shape) != 2 or "router" in name or scales[0] not in free:
            continue
        if not ref.names:
            found[f"{name}.scale"] = WeightRef(scales[0], (ref.n_experts,))
        elif len(set(scales)) == ref.n_experts:
            found[f"{name}.scale"] = WeightRef(scales[0], (ref.n_experts,), names=scales, file_shape=(1,))
    return found


def check_tensor(source: TensorSource, ref: WeightRef) -> None:
    """Raise ModelFileError where a tensor is missing, has another shape, or a type that no weight can have."""
    path = str(source.path)
    expected = ref.file_shape or ref.shape
    for name in ref.tensors:
        info = source.tensors.get(name)
        if info is None:
            raise ModelFileError("MISSING_TENSOR", f"tensor {name!r} is missing", path=path)
        if (info.shape or (1,)) != expected:
            shapes = f"has shape {list(info.shape)}, expected {list(expected)}"
            raise ModelFileError("BAD_TENSOR", f"tensor {name!r} {shapes}", path=path, offset=info.offset)
        is_vector = len(expected) == 1 or len(ref.shape) == 1
        vector_types = ("I32",) if ref.is_order else FLOAT_TYPES
        possible = info.qtype in (vector_types if is_vector else MATRIX_TYPES)
        if not possible and (is_vector or QUANT_TYPES[info.qtype].block_size == 1):
            raise ModelFileError("BAD_TENSOR", f"tensor {name!r} cannot be of type {info.qtype}", path=path)
        if ref.part is not None and ref.shape[1] % QUANT_TYPES[info.qtype].block_size:
            raise ModelFileError("UNSUPPORTED", f"tensor {name!r} of {info.qtype} cannot be divided", path=path)
        if info.qtype != source.tensors[ref.name].qtype:
            raise ModelFileError("UNSUPPORTED", "experts of one layer differ in type", path=path)

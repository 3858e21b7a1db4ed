"""An opened adapter, checked: which weights it changes, and by what."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.formats.files import Stamp, bad_file, open_regular, shown, stamp_of
from localrun.formats.source import TensorInfo

MERGE_HINT = "merge it into the model, or train one of the matrices of layers alone"
_PIECE_BYTES = 1 << 20
_TYPES = ("F32", "F16", "BF16")
AdapterFormat = Literal["peft", "mlx", "gguf"]
Halves = Mapping[str, Mapping[str, TensorInfo]]  # by the name of a weight: its "a" and "b"


@dataclass(frozen=True, slots=True)
class LowRankPair:
    """Matrices of an adapter for a weight W, to which scale · B A is added.

    `is_turned`: the file has A as [n_in, rank] and B as [rank, n_out], else [rank, n_in] and [n_out, rank].
    """

    a: TensorInfo
    b: TensorInfo
    scale: float
    is_turned: bool = False

    @property
    def rank(self) -> int:
        return self.b.shape[0 if self.is_turned else 1]

    @property
    def n_in(self) -> int:
        return self.a.shape[0 if self.is_turned else 1]

    @property
    def n_out(self) -> int:
        return self.b.shape[1 if self.is_turned else 0]


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterFile:
    """A checked adapter. `arch` is that of a GGUF, `base` the model it was trained on, as it says; else empty.

    `pairs` are by the name of their weight, in a GGUF or in a checkpoint of transformers, from `layers.` on.
    """

    path: Path
    format: AdapterFormat
    pairs: Mapping[str, LowRankPair]
    stamps: Mapping[Path, Stamp]
    sha256: str  # of all its files, one after the other
    arch: str = ""
    base: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of its matrices in the file."""
        return sum(pair.a.nbytes + pair.b.nbytes for pair in self.pairs.values())

    @property
    def ranks(self) -> tuple[int, ...]:
        """Every rank in the adapter, ascending."""
        return tuple(sorted({pair.rank for pair in self.pairs.values()}))


def pairs_of(
    path: Path, halves: Halves, scale_of: Callable[[str, int], float], is_turned: bool = False
) -> dict[str, LowRankPair]:
    """Both matrices of every weight; `scale_of` returns the factor for a weight and rank. Raises ModelFileError."""
    if not halves:
        raise bad_file("NO_TENSORS", "it changes no weight", path)
    pairs = {}
    for weight, found in halves.items():
        if len(found) != 2:
            raise bad_file("MISSING_TENSOR", f"one of the two matrices of {shown(weight)} is missing", path)
        for info in found.values():
            _check_matrix(info)
        pair = LowRankPair(found["a"], found["b"], 0.0, is_turned)
        rank_of_a = pair.a.shape[1 if is_turned else 0]
        if rank_of_a != pair.rank:
            told = f"the matrices of {shown(weight)} differ in rank, {rank_of_a:,} and {pair.rank:,}"
            raise bad_file("BAD_TENSOR", told, path, pair.b.offset)
        scale = scale_of(weight, pair.rank)
        if not math.isfinite(scale):
            raise bad_file("BAD_CONFIG", f"the scale of {shown(weight)} is {scale}", path)
        pairs[weight] = LowRankPair(pair.a, pair.b, scale, is_turned)
    return pairs


def _check_matrix(info: TensorInfo) -> None:
    if len(info.shape) == 3:
        raise unsupported(info.file, f"it changes {shown(info.name)}, of experts")
    if len(info.shape) != 2:
        shape = f"has the shape {list(info.shape)}, a matrix is needed"
        raise bad_file("BAD_TENSOR", f"the tensor {shown(info.name)} {shape}", info.file, info.offset)
    if info.qtype not in _TYPES:
        raise unsupported(info.file, f"the tensor {shown(info.name)} is of type {info.qtype}, not F32, F16 or BF16")


def unsupported(path: Path, what: str) -> ModelFileError:
    """The error for an adapter that changes unsupported parts."""
    return bad_file("UNSUPPORTED", what, path, hint=MERGE_HINT)


def digest_of(stamps: Mapping[Path, Stamp]) -> str:
    """sha256 of the concatenated files, each unchanged since it was opened. Raises ModelFileError."""
    hashed = hashlib.sha256()
    for path, stamp in stamps.items():
        with open_regular(path) as file:
            if stamp_of(file) != stamp:
                raise bad_file("CHANGED", "the file changed after it was opened", path, hint="load the model again")
            while piece := file.read(_PIECE_BYTES):
                hashed.update(piece)
    return hashed.hexdigest()


def stamps_of(paths: Iterable[Path]) -> dict[Path, Stamp]:
    """Stamps of the files now."""
    stamps = {}
    for path in paths:
        with open_regular(path) as file:
            stamps[path] = stamp_of(file)
    return stamps

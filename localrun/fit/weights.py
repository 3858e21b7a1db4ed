"""Bytes of weights in memory, which may differ from those in the file. Torch-free."""

import math
import re

from localrun.backends.registry import usual_backend
from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.fit.fastest import fastest_backend
from localrun.fit.mapped import Mappable, mappable
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo, TensorSource
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.recording import record_shapes
from localrun.model.shapes import Ranks
from localrun.model.weight_ref import WeightRef
from localrun.model.weight_sizes import held_bytes

_SAMPLE = 4096  # rows and columns of a matrix that tells how a type is held
_MIXED = {"IQ2_M": "IQ2_S", "IQ3_M": "IQ3_S", "IQ3_XS": "IQ3_S"}  # mixes whose name is no type of its own
_SIZE = re.compile(r"_(XXS|XS|S|M|L|XL|MOE)$")


@dataclass(frozen=True, slots=True)
class HeldWeights:
    """Bytes of the weights once loaded, and the matrices that may stay on disk, in the order in which they go."""

    nbytes: int
    mappable: tuple[Mappable, ...] = ()


def held(source: TensorSource, adapters: tuple[Ranks, ...] = ()) -> HeldWeights:
    """Bytes on this machine's default backend for a model with these adapters. For a model that cannot run all tensors
    count as loaded."""
    try:
        config = read_config(source)
        refs = read_weight_refs(source, config)
    except ModelFileError:
        return HeldWeights(sum(_held(info) for info in source.tensors.values()))
    backend = fastest_backend(record_shapes(config, adapters))

    def nbytes(ref: WeightRef) -> int:
        return backend.matrix_bytes(source.tensors[ref.name].qtype, *ref.shape)

    return HeldWeights(held_bytes(source, refs, backend.matrix_bytes), tuple(mappable(config, refs, nbytes)))


def held_share(precision: str) -> float:
    """Bytes in memory per byte in the file: above 1 for types with fewer bits than the kernels unpack to."""
    qtype = type_of(precision)
    if qtype is None:
        return 1.0
    return held_bits(qtype) / QUANT_TYPES[qtype].bits


def held_bits(qtype: str) -> float:
    """Bits per weight in memory for a quant type, on this machine's default backend."""
    return usual_backend().matrix_bytes(qtype, _SAMPLE, _SAMPLE) * 8 / _SAMPLE**2


def _held(info: TensorInfo) -> int:
    if len(info.shape) < 2:
        return 4 * math.prod(info.shape)
    n_cols = info.shape[-1]
    return usual_backend().matrix_bytes(info.qtype, math.prod(info.shape) // n_cols, n_cols)


def type_of(precision: str) -> str | None:
    """The main quant type of a precision: Q4_K for UD-Q4_K_XL; None for an unknown one."""
    name = precision.upper().removeprefix("UD-")
    name = _MIXED.get(name, name)
    for candidate in (name, _SIZE.sub("", name)):
        if candidate in QUANT_TYPES:
            return candidate
    return None

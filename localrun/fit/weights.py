"""What weights take in memory, which is not always what they take in a file. Torch-free."""

import math
import re

from localrun.backends.registry import usual_backend
from localrun.base.errors import ModelFileError
from localrun.fit.mapped import Mappable, mappable
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo, TensorSource

_SAMPLE = 4096  # rows and columns of a matrix that tells how a type is held
_MIXED = {"IQ2_M": "IQ2_S", "IQ3_M": "IQ3_S", "IQ3_XS": "IQ3_S"}  # mixes whose name is no type of its own
_SIZE = re.compile(r"_(XXS|XS|S|M|L|XL)$")


def held_bytes(source: TensorSource) -> int:
    """Bytes of the weights of a file once they are loaded on the usual backend of this machine.

    Of a model that cannot run all tensors count, as if they were loaded.
    """
    from localrun.model import load  # with numpy, which is for models that are here

    try:
        config = load.read_config(source)
        refs = load.read_weight_refs(source, config)
    except ModelFileError:
        return sum(_held(info) for info in source.tensors.values())
    return load.held_bytes(source, refs, usual_backend(config).matrix_bytes)


def mappable_weights(source: TensorSource) -> tuple[Mappable, ...]:
    """Of them, what may stay on disk where memory is short, in the order in which it goes."""
    from localrun.model import load

    try:
        config = load.read_config(source)
        refs = load.read_weight_refs(source, config)
    except ModelFileError:
        return ()
    backend = usual_backend(config)
    return tuple(mappable(config, refs, lambda ref: backend.matrix_bytes(source.tensors[ref.name].qtype, *ref.shape)))


def held_share(precision: str) -> float:
    """Bytes in memory for every byte in the file: above 1 for types of fewer bits than the kernels unpack to."""
    qtype = _type_of(precision)
    if qtype is None:
        return 1.0
    held = usual_backend().matrix_bytes(qtype, _SAMPLE, _SAMPLE)
    return held / QUANT_TYPES[qtype].nbytes((_SAMPLE, _SAMPLE))


def _held(info: TensorInfo) -> int:
    if len(info.shape) < 2:
        return 4 * math.prod(info.shape)
    n_cols = info.shape[-1]
    return usual_backend().matrix_bytes(info.qtype, math.prod(info.shape) // n_cols, n_cols)


def _type_of(precision: str) -> str | None:
    """The quant type that most of a precision is made of: Q4_K for UD-Q4_K_XL."""
    name = precision.upper().removeprefix("UD-")
    name = _MIXED.get(name, name)
    for candidate in (name, _SIZE.sub("", name)):
        if candidate in QUANT_TYPES:
            return candidate
    return None

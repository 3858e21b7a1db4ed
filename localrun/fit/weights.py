"""What weights take in memory, which is not always what they take in a file. Torch-free."""

import math
import re

from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo, TensorSource
from localrun.ops.cpu_calls import calls_of
from localrun.ops.library import load_library

_SAMPLE = 4096  # rows and columns of a matrix that tells how a type is held
_MIXED = {"IQ2_M": "IQ2_S", "IQ3_M": "IQ3_S", "IQ3_XS": "IQ3_S"}  # mixes whose name is no type of its own
_SIZE = re.compile(r"_(XXS|XS|S|M|L|XL)$")


def held_bytes(source: TensorSource) -> int:
    """Bytes of all tensors of a file once they are loaded on the usual backend of this machine."""
    return sum(_held(info) for info in source.tensors.values())


def held_share(precision: str) -> float:
    """Bytes in memory for every byte in the file: above 1 for types of fewer bits than the kernels unpack to."""
    qtype = _type_of(precision)
    if qtype is None:
        return 1.0
    shape = (_SAMPLE, _SAMPLE)
    return (_packed(qtype, shape) or QUANT_TYPES[qtype].nbytes(shape)) / QUANT_TYPES[qtype].nbytes(shape)


def _held(info: TensorInfo) -> int:
    if len(info.shape) < 2:
        return 4 * math.prod(info.shape)
    return _packed(info.qtype, info.shape) or info.nbytes


def _packed(qtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a matrix in the native library's layout; 0 where the file's own blocks are kept."""
    library, number = load_library(), QUANT_TYPES[qtype].gguf_id
    if library is None or number is None:
        return 0
    calls = calls_of(library)
    layout, n_cols = calls.layout_for(number), shape[-1]
    return max(0, calls.packed_bytes(layout, math.prod(shape) // n_cols, n_cols)) if layout >= 0 else 0


def _type_of(precision: str) -> str | None:
    """The quant type that most of a precision is made of: Q4_K for UD-Q4_K_XL."""
    name = precision.upper().removeprefix("UD-")
    name = _MIXED.get(name, name)
    for candidate in (name, _SIZE.sub("", name)):
        if candidate in QUANT_TYPES:
            return candidate
    return None

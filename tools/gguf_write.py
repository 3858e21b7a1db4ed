"""Writing GGUF files, through the gguf package: for tools and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localrun.formats.quant import QUANT_TYPES

if TYPE_CHECKING:
    import torch


_INT_RANGES = {
    "UINT32": (0, 1 << 32),
    "INT32": (-(1 << 31), 1 << 31),
    "UINT64": (0, 1 << 64),
    "INT64": (-(1 << 63), 1 << 63),
}


@dataclass(frozen=True, slots=True)
class Encoded:
    """A tensor whose bytes are at hand already. `shape` in torch order."""

    qtype: str
    shape: Sequence[int]
    raw: bytes | bytearray


@dataclass(frozen=True, slots=True)
class Typed:
    """A key's value with the name of its GGUF type (UINT8, INT64, FLOAT64, …), where the usual one will not do."""

    value: Any
    type: str


def write_gguf(
    path: str | Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, torch.Tensor | Encoded],
    qtypes: Mapping[str, str] | str = "F32",
    alignment: int | None = None,
    split_max_tensors: int = 0,
) -> list[Path]:
    """Write a GGUF file, or with `split_max_tensors` a set of shards. Returns the files written.

    `metadata` must have general.architecture. Its values: bool, str, float (as FLOAT32), int (as UINT32, or the
    smallest of INT32, UINT64, INT64 that holds it), lists of one of them (ints as INT32), or `Typed`.
    `qtypes` is the type of all tensors, or of each by name (F32 where not named).
    """
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter

    writer = GGUFWriter(None, str(metadata["general.architecture"]), split_max_tensors=split_max_tensors)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, value in metadata.items():
        if key == "general.architecture":
            continue
        typed = value if isinstance(value, Typed) else Typed(value, _value_type(value))
        writer.add_key_value(key, typed.value, GGUFValueType[typed.type])
    for name, tensor in tensors.items():
        qtype = qtypes if isinstance(qtypes, str) else qtypes.get(name, "F32")
        encoded = tensor if isinstance(tensor, Encoded) else _encode(tensor, qtype)
        row = QUANT_TYPES[encoded.qtype]
        raw = np.frombuffer(encoded.raw, np.uint8).reshape(*encoded.shape[:-1], row.nbytes(encoded.shape[-1:]))
        writer.add_tensor(name, raw, raw_dtype=GGMLQuantizationType[row.name])
    writer.write_header_to_file(Path(path))
    writer.write_kv_data_to_file()
    files = writer.format_shard_names(Path(path))
    writer.write_tensors_to_file()
    writer.close()
    return files


def _value_type(value: Any) -> str:
    match value:
        case bool():
            return "BOOL"
        case str():
            return "STRING"
        case float():
            return "FLOAT32"
        case int():
            return next(name for name, (low, high) in _INT_RANGES.items() if low <= value < high)
    return "ARRAY"


def _encode(tensor: torch.Tensor, qtype: str) -> Encoded:
    return Encoded(qtype, tuple(tensor.shape), QUANT_TYPES[qtype].encode(tensor).numpy().tobytes())

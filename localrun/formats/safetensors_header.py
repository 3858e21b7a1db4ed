"""The header of one safetensors file, checked against the size of the file before anything else is believed.

Layout: length of the header u64, little-endian · JSON {name: {dtype, shape, data_offsets: [begin, end]}} · the bytes
of all tensors, without holes. Like the GGUF header it can be read from a disk, or from a server before a download.
"""

from math import prod
from pathlib import Path
from typing import Any, NoReturn

from localrun.formats.file_types import HEAD_BYTES, recognise
from localrun.formats.files import Fetch, bad_file, shown
from localrun.formats.json_files import parse_json
from localrun.formats.layout import check_layout, is_tensor_name
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo

MAX_HEADER_BYTES = 24 << 20
MAX_NAME_CHARS = 512
MAX_DIMS = 8
DTYPES = (  # named like our quant types
    *("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0"),
    *("I64", "I32", "I16", "I8", "U32", "U16", "U8", "BOOL"),
)


def read_header(fetch: Fetch, size: int, path: Path) -> dict[str, TensorInfo]:
    """All tensors of a file of `size` bytes. Raises ModelFileError for anything wrong with it."""
    head = bytes(fetch(0, min(size, HEAD_BYTES)))
    length = int.from_bytes(head[:8], "little")
    if head[8:9] != b"{":
        _refuse_kind(head, path)
    if length > size - 8:
        raise bad_file("TRUNCATED", "the header is longer than the file, which is cut short or damaged", path, 0)
    if length > MAX_HEADER_BYTES:
        raise bad_file(
            "TOO_BIG", f"the header has {length:,} bytes, at most {MAX_HEADER_BYTES:,} are sensible", path, 0
        )
    raw = bytes(fetch(8, length))
    if len(raw) != length:
        raise bad_file("CHANGED", "the file became shorter while it was read", path, hint="load the model again")
    entries = parse_json(raw, path, "BAD_HEADER", strict=True)
    _check_user_metadata(entries.pop("__metadata__", None), path)
    if not entries:
        raise bad_file("NO_TENSORS", "there is no tensor in it", path, 8)
    data_start = 8 + length
    tensors = {name: _tensor_info(name, entry, path, data_start) for name, entry in entries.items()}
    end = check_layout(tensors.values(), path, size, data_start)
    if end != size:
        raise bad_file("TRAILING", f"{size - end:,} bytes at the end belong to no tensor", path, end)
    return tensors


def _refuse_kind(head: bytes, path: Path) -> NoReturn:
    if len(head) <= 8:
        raise bad_file("TRUNCATED", "the file ends before its header", path, len(head))
    kind = recognise(head)
    code = "NOT_SAFETENSORS" if kind.code == "UNKNOWN_FORMAT" else kind.code
    raise bad_file(code, f"this is {kind.name}, not a safetensors file", path, 0, kind.hint)


def _check_user_metadata(value: Any, path: Path) -> None:
    if value is None:
        return
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise bad_file("BAD_HEADER", "__metadata__ is not a table of texts", path, 8)


def _tensor_info(name: str, entry: Any, path: Path, data_start: int) -> TensorInfo:
    if len(name) > MAX_NAME_CHARS or not is_tensor_name(name):
        raise bad_file("BAD_NAME", f"{shown(name)} cannot be a tensor's name", path, 8)
    tensor = f"the tensor {shown(name)}"
    if not isinstance(entry, dict):
        raise bad_file("BAD_HEADER", f"{tensor} is not described by an object", path, 8)
    dtype: Any = entry.get("dtype")
    shape: Any = entry.get("shape")
    span: Any = entry.get("data_offsets")  # begin and end, from data_start on
    if dtype not in DTYPES:
        message = f"{tensor} stores its numbers as {shown(str(dtype))}, which cannot be read"
        raise bad_file("BAD_TENSOR_TYPE", message, path, 8, "get this model in bf16, or as GGUF")
    if not _are_whole(shape) or len(shape) > MAX_DIMS or not all(0 < dim < 1 << 63 for dim in shape):
        raise bad_file("BAD_DIMS", f"{tensor} has the impossible shape {shown(str(shape))}", path, 8)
    if not _are_whole(span) or len(span) != 2 or not 0 <= span[0] <= span[1] < 1 << 63:
        raise bad_file("BAD_OFFSET", f"{tensor} has the impossible place {shown(str(span))}", path, 8)
    if prod(shape) >= 1 << 60:
        raise bad_file("TOO_BIG", f"{tensor} has the impossible shape {shown(str(shape))}", path, 8)
    nbytes = QUANT_TYPES[dtype].nbytes(shape)
    if span[1] - span[0] != nbytes:
        message = f"{tensor} needs {nbytes:,} bytes, but has a place of {span[1] - span[0]:,}"
        raise bad_file("BAD_SIZE", message, path, data_start + span[0])
    return TensorInfo(name, tuple(shape), dtype, nbytes, path, data_start + span[0])


def _are_whole(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int for item in value)

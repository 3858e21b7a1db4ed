"""The header of one GGUF file: key-values and the table of tensors, checked against the size of the file.

All little-endian: "GGUF" · version u32 · n_tensors u64 · n_keys u64 · key-values · tensor table · padding to
`general.alignment` · the tensors' bytes, each padded in turn. A string is a u64 length and UTF-8 bytes.
The bytes come through a `Fetch`: a header can be read from a disk, or from a server before a download.
"""

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.formats.file_types import HEAD_BYTES, recognise
from localrun.formats.files import Fetch, shown
from localrun.formats.gguf_cursor import Cursor
from localrun.formats.layout import check_layout, is_tensor_name, padded
from localrun.formats.quant import BY_GGUF_ID
from localrun.formats.source import TensorInfo

MAX_ENTRIES = 65_536  # keys, and tensors: ours
MAX_KEY_BYTES = 65_535  # the format's
MAX_NAME_BYTES = 64
MAX_DIMS = 4
MAX_ALIGNMENT = 64 << 10
DEFAULT_ALIGNMENT = 32
_U32 = 4


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """One file, checked: all bytes of its tensors lie inside it, none belongs to two, and none lies between."""

    version: int
    metadata: dict[str, Any]
    tensors: dict[str, TensorInfo]
    n_trailing: int  # bytes behind the last tensor and its padding


def read_header(fetch: Fetch, size: int, path: Path) -> GgufHeader:
    """Read and check the header of a file of `size` bytes. Raises ModelFileError for anything wrong with it."""
    cursor = Cursor(fetch, size, path)
    version = _read_version(cursor)
    n_tensors, n_keys = _read_count(cursor, "tensors"), _read_count(cursor, "keys")
    metadata, alignment = _read_metadata(cursor, n_keys)
    table = _read_tensor_table(cursor, n_tensors)
    data_start = padded(cursor.pos, alignment)
    tensors = {name: replace(info, offset=data_start + info.offset) for name, info in table.items()}
    data_end = check_layout(tensors.values(), path, size, data_start, alignment)
    return GgufHeader(version, metadata, tensors, max(0, size - data_end))


def _read_version(cursor: Cursor) -> int:
    head = cursor.head(HEAD_BYTES)
    if 0 < len(head) < 4 and b"GGUF".startswith(head):
        cursor.fail("TRUNCATED", "the file ends inside its first four bytes")
    if head[:4] != b"GGUF":
        kind = recognise(head)
        code = "NOT_GGUF" if kind.code == "UNKNOWN_FORMAT" else kind.code
        cursor.fail(code, f"this is {kind.name}, not a GGUF file", hint=kind.hint)
    cursor.number("I", "the magic")
    version: int = cursor.number("I", "the version")
    if version and version & 0xFFFF == 0:
        cursor.fail("BIG_ENDIAN", "this GGUF file is big-endian", 4, "get the little-endian file of this model")
    if version not in (2, 3):
        cursor.fail("BAD_VERSION", f"GGUF version {version}; versions 2 and 3 can be read", 4)
    return version


def _read_count(cursor: Cursor, what: str) -> int:
    at = cursor.pos
    count: int = cursor.number("Q", f"the number of {what}")
    if count > MAX_ENTRIES:
        cursor.fail("BAD_COUNT", f"{count:,} {what} are more than any model has", at)
    return count


def _read_metadata(cursor: Cursor, n_keys: int) -> tuple[dict[str, Any], int]:
    metadata: dict[str, Any] = {}
    alignment = DEFAULT_ALIGNMENT
    for _ in range(n_keys):
        at = cursor.pos
        key = cursor.string("a key", MAX_KEY_BYTES, "BAD_KEY")
        if not key or not key.isprintable():
            cursor.fail("BAD_KEY", f"{shown(key)} cannot be a key", at)
        if key in metadata:
            cursor.fail("DUP_KEY", f"the key {shown(key)} appears twice", at)
        value_type: int = cursor.number("I", f"the type of {shown(key)}")
        metadata[key] = cursor.value(value_type, f"the value of {shown(key)}")
        if key == "general.alignment":
            alignment = _check_alignment(cursor, value_type, metadata[key], at)
    return metadata, alignment


def _check_alignment(cursor: Cursor, value_type: int, value: Any, at: int) -> int:
    if value_type != _U32 or not 0 < value <= MAX_ALIGNMENT or value & (value - 1):
        message = f"general.alignment has to be a power of two of type u32, at most {MAX_ALIGNMENT}"
        cursor.fail("BAD_ALIGN", message, at)
    return int(value)


def _read_tensor_table(cursor: Cursor, n_tensors: int) -> dict[str, TensorInfo]:
    """Tensors by name; their `offset` still counts from the start of the data."""
    tensors: dict[str, TensorInfo] = {}
    for _ in range(n_tensors):
        at = cursor.pos
        name = cursor.string("a tensor's name", MAX_NAME_BYTES, "BAD_NAME")
        if not is_tensor_name(name):
            cursor.fail("BAD_NAME", f"{shown(name)} cannot be a tensor's name", at)
        if name in tensors:
            cursor.fail("DUP_TENSOR", f"the tensor {shown(name)} appears twice", at)
        tensors[name] = _read_tensor_info(cursor, name)
    return tensors


def _read_tensor_info(cursor: Cursor, name: str) -> TensorInfo:
    at, what = cursor.pos, f"the entry of the tensor {shown(name)}"
    n_dims = cursor.number("I", what)
    if not 1 <= n_dims <= MAX_DIMS:
        cursor.fail("BAD_DIMS", f"the tensor {shown(name)} has {n_dims:,} dimensions, 1 to {MAX_DIMS} are possible", at)
    dims = [cursor.number("Q", what) for _ in range(n_dims)]
    if not all(0 < dim < 1 << 63 for dim in dims):
        cursor.fail("BAD_DIMS", f"the tensor {shown(name)} has the impossible size {dims}", at)
    type_at = cursor.pos
    type_id = cursor.number("I", what)
    qtype = BY_GGUF_ID.get(type_id)
    if qtype is None:
        hint = "get this model in another quantization"
        cursor.fail("BAD_TENSOR_TYPE", f"the tensor {shown(name)} has the unknown type {type_id}", type_at, hint)
    if dims[0] % qtype.block_size:
        message = f"a row of {dims[0]:,} elements of the tensor {shown(name)} is not made of whole {qtype.name} blocks"
        cursor.fail("BAD_ROW", f"{message} of {qtype.block_size}", at)
    nbytes = prod(dims) // qtype.block_size * qtype.block_bytes
    if prod(dims) >= 1 << 63 or nbytes >= 1 << 63:
        cursor.fail("TOO_BIG", f"the tensor {shown(name)} has the impossible size {dims}", at)
    return TensorInfo(name, tuple(reversed(dims)), qtype.name, nbytes, cursor.path, cursor.number("Q", what))

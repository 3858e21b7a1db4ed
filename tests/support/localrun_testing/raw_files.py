"""GGUF and safetensors files byte by byte, so that every field can be wrong. Nothing of localrun is used here."""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
Q4_0, Q4_K = 2, 12
PACKING = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}


def u32(value: int) -> bytes:
    return struct.pack("<I", value & 0xFFFFFFFF)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value & (1 << 64) - 1)


def text(value: str | bytes, length: int | None = None) -> bytes:
    """A GGUF string, which may lie about its length."""
    raw = value.encode() if isinstance(value, str) else value
    return u64(len(raw) if length is None else length) + raw


def key(name: str | bytes, value_type: int, payload: bytes) -> bytes:
    return text(name) + u32(value_type) + payload


def value(name: str | bytes, value_type: int, content: Any) -> bytes:
    """A key with a plain value of that type."""
    payload = text(content) if value_type == STRING else struct.pack("<" + PACKING[value_type], content)
    return key(name, value_type, payload)


def array(name: str, element_type: int, count: int, payload: bytes = b"") -> bytes:
    return key(name, ARRAY, u32(element_type) + u64(count) + payload)


def tensor(
    name: str | bytes, dims: Sequence[int] = (32,), type_id: int = 0, offset: int = 0, n_dims: int | None = None
) -> bytes:
    """An entry of the tensor table; `dims` in file order, rows last. F32 where nothing is said."""
    shape = b"".join(map(u64, dims))
    return text(name) + u32(len(dims) if n_dims is None else n_dims) + shape + u32(type_id) + u64(offset)


ARCH = value("general.architecture", STRING, "llama")


def gguf_file(
    keys: Sequence[bytes] = (ARCH,),
    tensors: Sequence[bytes] = (),
    data: bytes = b"",
    *,
    version: int = 3,
    n_keys: int | None = None,
    n_tensors: int | None = None,
    alignment: int = 32,
) -> bytes:
    """A GGUF file; counts, and everything in keys and tensors, may be wrong."""
    counts = u64(len(tensors) if n_tensors is None else n_tensors) + u64(len(keys) if n_keys is None else n_keys)
    head = b"GGUF" + u32(version) + counts + b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data if tensors else head


@dataclass(frozen=True)
class Entry:
    """A tensor in a safetensors header."""

    dtype: Any = "F32"
    shape: Any = (2,)
    offsets: Any = (0, 8)

    def json(self) -> str:
        return json.dumps({"dtype": self.dtype, "shape": self.shape, "data_offsets": self.offsets})


def safetensors_file(header: str | bytes | dict[str, Entry], data: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file, from entries or from the text of a header."""
    if isinstance(header, dict):
        header = "{" + ",".join(f"{json.dumps(name)}:{entry.json()}" for name, entry in header.items()) + "}"
    raw = header.encode() if isinstance(header, str) else header
    return u64(len(raw) if length is None else length) + raw + data

"""File format of one block: its name, a header, the token ids, then its parts. Anything else is not a block."""

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import accumulate
from pathlib import Path

from localrun.base.small_file import open_regular

MAGIC = b"lrkv\x02\r\n\x1a"
_MAX_IDS = 4096  # of a block that somebody else may have written
_HEAD = struct.Struct("<8s16sIII")  # magic, fingerprint, ids, parts, CRC-32 of all that follows the head


@dataclass(frozen=True, slots=True)
class BlockKey:
    """Name of a block: `own` is the hash of all ids up to its end, `before` that of the block it follows."""

    before: bytes
    own: bytes
    n_tokens: int

    @property
    def name(self) -> str:
        return f"{self.before.hex()}-{self.own.hex()}"


def digest(*parts: bytes) -> bytes:
    """Hash of `parts` in 16 bytes, each part delimited by its length."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return hashed.digest()[:16]


def pack(fingerprint: bytes, ids: Sequence[int], parts: Sequence[bytes]) -> list[bytes]:
    """The pieces of a file, in order; b"" stands for a missing part."""
    body = [pack_ids(ids), b"".join(len(part).to_bytes(8, "little") for part in parts), *parts]
    checksum = 0
    for piece in body:
        checksum = zlib.crc32(piece, checksum)
    return [_HEAD.pack(MAGIC, fingerprint, len(ids), len(parts), checksum), *body]


def parse(data: memoryview, fingerprint: bytes, ids: Sequence[int], sizes: Sequence[int]) -> list[memoryview] | None:
    """The parts, if `data` is a whole file that holds `ids`; part i has `sizes[i]` bytes or none."""
    if len(data) < _HEAD.size:
        return None
    body = data[_HEAD.size :]
    *found, checksum = _HEAD.unpack_from(data)
    if found != [MAGIC, fingerprint, len(ids), len(sizes)] or zlib.crc32(body) != checksum:
        return None
    lengths_at, parts_at = 4 * len(ids), 4 * len(ids) + 8 * len(sizes)
    if body[:lengths_at] != pack_ids(ids) or len(body) < parts_at:
        return None
    lengths = struct.unpack_from(f"<{len(sizes)}Q", body, lengths_at)
    if len(body) != parts_at + sum(lengths) or any(n not in (0, m) for n, m in zip(lengths, sizes, strict=True)):
        return None
    ends = accumulate(lengths, initial=parts_at)
    return [body[end : end + length] for end, length in zip(ends, lengths, strict=False)]


def most_bytes(ids: Sequence[int], sizes: Sequence[int]) -> int:
    """Largest size of the file of such a block, with all its parts."""
    return _HEAD.size + 4 * len(ids) + 8 * len(sizes) + sum(sizes)


def claimed_ids(path: Path) -> bytes:
    """The ids in a file's header, packed; not verified. Raises OSError or struct.error."""
    with BufferedReader(open_regular(path)) as file:
        _, _, n_ids, _, _ = _HEAD.unpack(file.read(_HEAD.size))
        packed = file.read(4 * min(n_ids, _MAX_IDS))
    if len(packed) < 4 * n_ids:
        raise struct.error("not as many ids as it says")
    return packed


def pack_ids(ids: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(ids)}I", *ids)


def unpack_ids(packed: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(packed) // 4}I", packed)


def n_shared(a: bytes, b: bytes) -> int:
    """Number of leading ids that two packed sequences share."""
    low, high = 0, min(len(a), len(b)) // 4
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[: 4 * middle] == b[: 4 * middle] else (low, middle - 1)
    return low

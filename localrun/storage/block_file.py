"""File format of one block: its name, a header, the token ids, then its parts. Anything else is not a block."""

import hashlib
import struct
import zlib
from collections.abc import Sequence
from io import BufferedReader
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from localrun.base.dataclass import dataclass
from localrun.base.image_ids import has_images
from localrun.base.small_file import open_regular

MAGIC = b"lrkv\x02\r\n\x1a"
MAGIC_OF_IMAGES = b"lrkv\x03\r\n\x1a"  # ids may be those of images
_TEXT, _IMAGES = 4, 20  # bytes of an id
_MAX_IDS = 4096  # of a block that somebody else may have written
_HEAD = struct.Struct("<8s16sIII")  # magic, fingerprint, ids, parts, CRC-32 of all that follows the head


class PackedIds(NamedTuple):
    """Ids as bytes: four each, or where some are rows of images twenty, with the number of the row and the digest."""

    data: bytes
    width: int

    def widened(self) -> bytes:
        return self.data if self.width == _IMAGES else _pack_wide(unpack_ids(self))


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
    packed = pack_ids(ids)
    body = [packed.data, b"".join(len(part).to_bytes(8, "little") for part in parts), *parts]
    checksum = 0
    for piece in body:
        checksum = zlib.crc32(piece, checksum)
    return [_HEAD.pack(_magic(packed.width), fingerprint, len(ids), len(parts), checksum), *body]


def parse(data: memoryview, fingerprint: bytes, ids: Sequence[int], sizes: Sequence[int]) -> list[memoryview] | None:
    """The parts, if `data` is a whole file that holds `ids`; part i has `sizes[i]` bytes or none."""
    if len(data) < _HEAD.size:
        return None
    body = data[_HEAD.size :]
    *found, checksum = _HEAD.unpack_from(data)
    packed = pack_ids(ids)
    if found != [_magic(packed.width), fingerprint, len(ids), len(sizes)] or zlib.crc32(body) != checksum:
        return None
    lengths_at = len(packed.data)
    parts_at = lengths_at + 8 * len(sizes)
    if body[:lengths_at] != packed.data or len(body) < parts_at:
        return None
    lengths = struct.unpack_from(f"<{len(sizes)}Q", body, lengths_at)
    if len(body) != parts_at + sum(lengths) or any(n not in (0, m) for n, m in zip(lengths, sizes, strict=True)):
        return None
    ends = accumulate(lengths, initial=parts_at)
    return [body[end : end + length] for end, length in zip(ends, lengths, strict=False)]


def most_bytes(ids: Sequence[int], sizes: Sequence[int]) -> int:
    """Largest size of the file of such a block, with all its parts."""
    return _HEAD.size + len(pack_ids(ids).data) + 8 * len(sizes) + sum(sizes)


def claimed_ids(path: Path) -> PackedIds:
    """The ids in a file's header, packed; not verified. Raises OSError or struct.error."""
    with BufferedReader(open_regular(path)) as file:
        magic, _, n_ids, _, _ = _HEAD.unpack(file.read(_HEAD.size))
        width = _IMAGES if magic == MAGIC_OF_IMAGES else _TEXT
        packed = file.read(width * min(n_ids, _MAX_IDS))
    if len(packed) < width * n_ids:
        raise struct.error("not as many ids as it says")
    return PackedIds(packed, width)


def pack_ids(ids: Sequence[int]) -> PackedIds:
    if has_images(ids):
        return PackedIds(_pack_wide(ids), _IMAGES)
    return PackedIds(struct.pack(f"<{len(ids)}I", *ids), _TEXT)


def unpack_ids(packed: PackedIds) -> tuple[int, ...]:
    data, width = packed
    if width == _TEXT:
        return struct.unpack(f"<{len(data) // width}I", data)
    return tuple(int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width))


def n_shared(a: PackedIds, b: PackedIds) -> int:
    """Number of leading ids that two packed sequences share."""
    width, left, right = a.width, a.data, b.data
    if a.width != b.width:
        width, left, right = _IMAGES, a.widened(), b.widened()
    low, high = 0, min(len(left), len(right)) // width
    while low < high:
        middle = (low + high + 1) // 2
        end = width * middle
        low, high = (middle, high) if left[:end] == right[:end] else (low, middle - 1)
    return low


def _magic(width: int) -> bytes:
    return MAGIC if width == _TEXT else MAGIC_OF_IMAGES


def _pack_wide(ids: Sequence[int]) -> bytes:
    return b"".join(one.to_bytes(_IMAGES, "little") for one in ids)

"""The prefix cache on disk: one file a block, found by the ids before and in it. Bytes and ints, no tensors.

A file's name is a chain of hashes over the fingerprint and all token ids up to the block's end, so two chats that begin
alike share files, a longer chat adds only what is new, and what follows a block is found by name. Files appear by
rename and are never changed: any number of processes may read, write and trim one folder. Whatever is not exactly what
was saved is a miss, never an error.
"""

import hashlib
import os
import struct
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

MAGIC = b"lrkv\x01\r\n\x1a"
SUFFIX = ".kv"
_MAX_IDS = 4096  # of a block that somebody else may have written
_HEAD = struct.Struct("<8s16sIII")  # magic, fingerprint, ids, parts, CRC-32 of all that follows the head
_STALE_SECONDS = 3600  # after which the temporary file of a process that died is removed
_MAX_AGE_SECONDS = 30 * 86400  # unused for so long goes: as long as a deleted chat can be brought back


def digest(*parts: bytes) -> bytes:
    """16 bytes that stand for `parts`, each delimited by its length."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return hashed.digest()[:16]


@dataclass(frozen=True, slots=True)
class Key:
    """Names a block by all ids up to its end; `before` names the block it follows."""

    before: bytes
    own: bytes

    @property
    def file_name(self) -> str:
        return f"{self.before.hex()}-{self.own.hex()}{SUFFIX}"


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """One file as `trim` sees it."""

    path: Path
    nbytes: int
    last_used: float  # seconds since 1970


class DiskTier:
    """Blocks of one fingerprint in `folder`, at most `budget` bytes of all fingerprints together.

    The fingerprint says everything the bytes depend on: weights, tokenizer, backend, numerics, codecs, window, rope.
    """

    def __init__(self, folder: Path, fingerprint: str, budget: int) -> None:
        self.folder = folder
        self.fingerprint = digest(fingerprint.encode())
        self.budget = budget

    def key(self, before: Key | None, ids: Sequence[int]) -> Key:
        """The key of a block that holds `ids` and comes after the block of key `before` (None: it is the first)."""
        start = before.own if before else self.fingerprint
        return Key(start, digest(start, _packed(ids)))

    def following(self, before: Key | None) -> Iterator[tuple[Key, tuple[int, ...]]]:
        """The blocks that follow another one, and the ids they claim to hold; `load` finds out whether they do."""
        start = before.own if before else self.fingerprint
        prefix = f"{start.hex()}-"
        with suppress(OSError, ValueError, struct.error):
            for entry in os.scandir(self._folder):
                if entry.name.startswith(prefix) and entry.name.endswith(SUFFIX):
                    ids = _claimed_ids(Path(entry.path))
                    yield Key(start, digest(start, _packed(ids))), ids

    def has(self, key: Key) -> bool:
        return self._path(key).exists()

    def save(self, key: Key, ids: Sequence[int], parts: Sequence[bytes]) -> bool:
        """Keep a block; b"" stands for a part that is not there. False when that cannot be written."""
        body = [_packed(ids), b"".join(len(part).to_bytes(8, "little") for part in parts), *parts]
        checksum = 0
        for piece in body:
            checksum = zlib.crc32(piece, checksum)
        head = _HEAD.pack(MAGIC, self.fingerprint, len(ids), len(parts), checksum)
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:  # mode 0600
                try:
                    file.writelines([head, *body])
                    file.close()
                    os.replace(file.name, path)
                except BaseException:
                    file.close()
                    Path(file.name).unlink(missing_ok=True)
                    raise
        except OSError:
            return False
        return True

    def load(self, key: Key, ids: Sequence[int], sizes: Sequence[int]) -> list[memoryview] | None:
        """The parts of a block, if it is there whole and holds `ids`. `sizes[i]` is the one length part i may have
        besides 0."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                limit = _HEAD.size + 4 * len(ids) + 8 * len(sizes) + sum(sizes)
                if os.fstat(file.fileno()).st_size > limit:
                    return None
                data = memoryview(file.read(limit + 1))
        except OSError:
            return None
        found = self._parse(data, ids, sizes)
        if found is None:
            with suppress(OSError):
                path.unlink()
        return found

    def touch(self, chain: Sequence[Key]) -> None:
        """These blocks, from the first of a text on, were used now: what is further down goes first."""
        now = time.time()
        for index, key in enumerate(chain):
            with suppress(OSError):
                os.utime(self._path(key), (now, now - 0.001 * index))

    def forget(self, keys: Sequence[Key]) -> None:
        """Remove these blocks, so that nothing of their text stays."""
        for key in keys:
            self._path(key).unlink(missing_ok=True)

    def nbytes(self) -> int:
        """Bytes of all blocks, of every fingerprint."""
        return sum(block.nbytes for block in self.blocks())

    def blocks(self) -> Iterator[StoredBlock]:
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                if entry.is_dir(follow_symlinks=False):
                    yield from _blocks_in(Path(entry.path))

    def trim(self) -> int:
        """Remove what was not used for a month, and the least recently used beyond the budget; gives bytes removed."""
        blocks = sorted(self.blocks(), key=lambda block: block.last_used)
        excess = sum(block.nbytes for block in blocks) - self.budget
        oldest = time.time() - _MAX_AGE_SECONDS
        removed = 0
        for block in blocks:
            if removed >= excess and block.last_used >= oldest:
                break
            with suppress(OSError):
                block.path.unlink()
            removed += block.nbytes
        return removed

    @property
    def _folder(self) -> Path:
        return self.folder / self.fingerprint.hex()

    def _path(self, key: Key) -> Path:
        return self._folder / key.file_name

    def _parse(self, data: memoryview, ids: Sequence[int], sizes: Sequence[int]) -> list[memoryview] | None:
        if len(data) < _HEAD.size:
            return None
        magic, fingerprint, n_ids, n_parts, checksum = _HEAD.unpack_from(data)
        body = data[_HEAD.size :]
        expected = (MAGIC, self.fingerprint, len(ids), len(sizes))
        if (magic, fingerprint, n_ids, n_parts) != expected or zlib.crc32(body) != checksum:
            return None
        lengths_at, parts_at = 4 * n_ids, 4 * n_ids + 8 * n_parts
        if body[:lengths_at] != _packed(ids) or len(body) < parts_at:
            return None
        lengths = struct.unpack_from(f"<{n_parts}Q", body, lengths_at)
        if len(body) != parts_at + sum(lengths) or any(n not in (0, m) for n, m in zip(lengths, sizes, strict=True)):
            return None
        ends = accumulate(lengths, initial=parts_at)
        return [body[end : end + length] for end, length in zip(ends, lengths, strict=False)]


def _claimed_ids(path: Path) -> tuple[int, ...]:
    with open(path, "rb") as file:
        _, _, n_ids, _, _ = _HEAD.unpack(file.read(_HEAD.size))
        return struct.unpack(f"<{n_ids}I", file.read(4 * min(n_ids, _MAX_IDS)))


def _packed(ids: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(ids)}I", *ids)


def _blocks_in(folder: Path) -> Iterator[StoredBlock]:
    for entry in os.scandir(folder):
        with suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            if entry.name.endswith(SUFFIX):
                yield StoredBlock(Path(entry.path), status.st_size, status.st_mtime)
            elif status.st_mtime < time.time() - _STALE_SECONDS:
                os.unlink(entry.path)

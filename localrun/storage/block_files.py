"""The prefix cache on disk: one file per block, found by the ids before and in it. Bytes and ints, no tensors.

A file's name is a chain of hashes over the fingerprint and all token ids up to the block's end. So chats that begin
alike share files, a longer chat adds only its new blocks, and the next block is found by name. A block lies in a folder
named by the hash of the block before it: finding the next block costs the same however many chats are stored. Any
number of processes may read, write and trim below one root: changes are made under a lock, and files appear by rename,
so readers need no lock. A file that is not exactly what was saved is a miss, never an error.
"""

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from localrun.base.dataclass import dataclass
from localrun.base.files import replace_file
from localrun.base.lock import locked
from localrun.base.small_file import open_regular
from localrun.storage.block_file import (
    BlockKey,
    PackedIds,
    claimed_ids,
    digest,
    most_bytes,
    n_shared,
    pack,
    pack_ids,
    parse,
    unpack_ids,
)
from localrun.storage.claims import Claims, is_erased
from localrun.storage.inventory import BUCKET_DIGITS, LOCK, SUFFIX, UNFINISHED
from localrun.storage.label import NO_LABEL, Label, write_label

DISK_FOLDER = "kv"  # in the folder of caches
REMEMBERED = 8192  # files whose ids are known without opening them


@dataclass(frozen=True, slots=True)
class FoundBlock:
    """A complete block from disk; b"" stands for a missing part."""

    key: BlockKey
    ids: tuple[int, ...]
    parts: list[memoryview]

    def n_shared(self, token_ids: Sequence[int]) -> int:
        """Number of leading `token_ids` that this block covers, with the blocks before it."""
        start = self.key.n_tokens - len(self.ids)
        return start + n_shared(pack_ids(self.ids), pack_ids(token_ids[start : self.key.n_tokens]))


class BlockFiles:
    """Blocks of one fingerprint below `root`; any thread may read while others write.

    The fingerprint stands for everything the bytes depend on: weights, tokenizer, backend, numerics, codecs, rope.
    `window` is what a query sees in addition to the first block; it is part of a block's name only where it hides
    something. `sizes`: bytes of every part of a block of `block_tokens` tokens.
    """

    def __init__(
        self, root: Path, fingerprint: str, sizes: Sequence[int], label: Label = NO_LABEL, window: int | None = None
    ) -> None:
        self.root = root
        self.fingerprint = digest(fingerprint.encode())
        self.sizes = tuple(sizes)
        self.label = label
        self.block_tokens = label.block_tokens
        self.window = window
        self.folder = root / self.fingerprint.hex()
        self._below = f"{self.folder}{os.sep}"  # looking for many files, Path is too slow
        self.claims = Claims(self.folder)
        self._ids: dict[str, PackedIds] = {}  # what files of these names claim to hold

    def key(self, before: BlockKey | None, ids: Sequence[int]) -> BlockKey:
        """Key of the block that holds `ids` and follows the block `before` (None: it is the first)."""
        start, end = (before.own, before.n_tokens + len(ids)) if before else (self.fingerprint, len(ids))
        hides = self.window is not None and end > self.window + self.block_tokens
        return BlockKey(start, digest(start, pack_ids(ids).data, *([str(self.window).encode()] if hides else ())), end)

    def path(self, key: BlockKey) -> Path:
        return Path(self._file(key))

    def load(self, key: BlockKey, ids: Sequence[int]) -> list[memoryview] | None:
        """The parts of a block, if it is complete on disk and holds `ids`. A damaged file is removed."""
        try:
            found = self._read(key, ids)
            if found is None:
                with self._alone():  # another process may just have put a whole one there
                    found = self._read(key, ids)
                    if found is None:
                        os.unlink(self._file(key))
            return found
        except OSError:
            return None

    def _read(self, key: BlockKey, ids: Sequence[int]) -> list[memoryview] | None:
        """The parts of a block; None where it is damaged. Raises OSError where there is no file."""
        with BufferedReader(open_regular(Path(self._file(key)))) as file:
            data = memoryview(file.read(most_bytes(ids, self.sizes) + 1))
        return parse(data, self.fingerprint, ids, self.sizes)

    def following(self, before: BlockKey | None) -> Iterator[PackedIds]:
        """The packed ids in the headers of blocks that follow another one; `load` verifies them."""
        start = before.own if before else self.fingerprint
        prefix = f"{start.hex()}-"
        with suppress(OSError), os.scandir(self._bucket(start)) as entries:
            for entry in entries:
                if entry.name.startswith(prefix) and entry.name.endswith(SUFFIX):
                    with suppress(OSError, struct.error):
                        yield self._claimed_ids(entry)

    def read_on(self, before: BlockKey | None, token_ids: Sequence[int], n_known: int = 0) -> Iterator[FoundBlock]:
        """Read the blocks of `token_ids` after the block `before`: full ones, then the one that shares the most ids.

        The last one only if it covers more than the `n_known` tokens that are known already.
        """
        start, size = 0, self.block_tokens
        while start + size <= len(token_ids):
            ids = tuple(token_ids[start : start + size])
            key = self.key(before, ids)
            parts = self.load(key, ids)
            if parts is None:
                break
            yield FoundBlock(key, ids, parts)
            before, start, n_known = key, start + size, 0
        wanted = pack_ids(token_ids[start : start + size])
        shared = [(n, packed) for packed in self.following(before) if (n := n_shared(packed, wanted)) > n_known]
        for _, packed in sorted(shared, reverse=True):
            ids = unpack_ids(packed)
            key = self.key(before, ids)
            if (parts := self.load(key, ids)) is not None:
                yield FoundBlock(key, ids, parts)
                return

    def save(self, key: BlockKey, ids: Sequence[int], parts: Sequence[bytes], chats: Sequence[str]) -> int:
        """Store a block of these chats, merged with parts of an older file. Returns the bytes written.

        0 where the file has all parts already, or all the chats were erased meanwhile. Raises OSError.
        """
        with self._alone():
            known: list[memoryview] | None = None
            with suppress(OSError):
                known = self._read(key, ids)
            known = known or [memoryview(b"")] * len(parts)
            is_there = all(a or not b for a, b in zip(known, parts, strict=True))
            if not self._claim([key], chats) or is_there:
                return 0
            pieces = pack(self.fingerprint, ids, [b or bytes(a) for a, b in zip(known, parts, strict=True)])
            self._write(key, pieces)
            return sum(map(len, pieces))

    def claim(self, keys: Sequence[BlockKey], chats: Sequence[str]) -> None:
        """Note that the blocks belong to these chats. Raises OSError."""
        with self._alone():
            self._claim(keys, chats)

    def _alone(self) -> AbstractContextManager[None]:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return locked(self.root / LOCK)

    def _claim(self, keys: Sequence[BlockKey], chats: Sequence[str]) -> bool:
        """Note the claims; False where all the chats are erased."""
        living = [chat for chat in chats if not is_erased(self.root, chat)]
        for chat in living:
            self.claims.add(chat, [key.name for key in keys])
        return bool(living)

    def touch(self, key: BlockKey) -> None:
        """Note that the text up to the end of this block was used now."""
        with suppress(OSError):
            os.utime(self._file(key))

    def _write(self, key: BlockKey, pieces: Sequence[bytes]) -> None:
        path = self._file(key)
        fresh = path + UNFINISHED
        try:
            with self._created(fresh) as file:
                file.writelines(pieces)
            replace_file(fresh, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(fresh)
            raise

    def _created(self, path: str) -> BinaryIO:
        try:
            return open(path, "wb", opener=_private)
        except FileNotFoundError:  # its folder is not there yet
            for folder in (self.folder, Path(path).parent):  # the mode is of the last folder that mkdir makes
                folder.mkdir(exist_ok=True, mode=0o700)
                write_label(self.folder, self.label)
            return open(path, "wb", opener=_private)

    def _claimed_ids(self, entry: os.DirEntry[str]) -> PackedIds:
        """The ids in a block's header, cached, since a thousand chats may follow the same beginning.

        A block of this name never has other ids.
        """
        packed = self._ids.get(entry.name)
        if packed is None:
            packed = claimed_ids(Path(entry.path))
            if len(self._ids) >= REMEMBERED:
                self._ids.clear()
            self._ids[entry.name] = packed
        return packed

    def _bucket(self, before: bytes) -> str:
        return self._below + before.hex()[:BUCKET_DIGITS]

    def _file(self, key: BlockKey) -> str:
        return f"{self._bucket(key.before)}{os.sep}{key.name}{SUFFIX}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

"""The prefix cache on disk: one file a block, found by the ids before and in it. Bytes and ints, no tensors.

A file's name is a chain of hashes over the fingerprint and all token ids up to the block's end, so two chats that begin
alike share files, a longer chat adds only what is new, and what follows a block is found by name. It lies in a folder
named by the hash before it: looking for what follows a block costs the same however many chats are kept. Files appear
by rename and are never changed: any number of processes may read, write and trim one folder. Whatever is not exactly
what was saved is a miss, never an error.
"""

import os
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localrun.cache.block_file import claimed_ids, most_bytes, n_shared, pack, pack_ids, parse, unpack_ids
from localrun.cache.claims import Claims, is_erased
from localrun.cache.groups import BLOCK_TOKENS
from localrun.cache.keys import Key, digest
from localrun.cache.label import NO_LABEL, Label, write_label
from localrun.cache.stored import SUFFIX

DISK_FOLDER = "kv"  # in the folder of caches
SAVE_ATTEMPTS = 20  # against processes that tidy and erase in the same folder
REMEMBERED = 8192  # files whose ids are known without opening them


@dataclass(frozen=True, slots=True)
class Found:
    """A block that was on disk, whole; b"" stands for a part that is not there."""

    key: Key
    ids: tuple[int, ...]
    parts: list[memoryview]


class DiskTier:
    """Blocks of one fingerprint below `root`. Nothing here knows an engine: any thread may read while others write.

    The fingerprint says everything the bytes depend on: weights, tokenizer, backend, numerics, codecs, rope. `window`
    is what a query sees besides the first block: it is part of a block's name where it hides something, not before.
    `sizes`: bytes of every part of a block.
    """

    def __init__(
        self, root: Path, fingerprint: str, sizes: Sequence[int], label: Label = NO_LABEL, window: int | None = None
    ) -> None:
        self.root = root
        self.fingerprint = digest(fingerprint.encode())
        self.sizes = tuple(sizes)
        self.label = label
        self.window = window
        self.folder = root / self.fingerprint.hex()
        self.claims = Claims(self.folder)
        self._ids: dict[str, bytes] = {}  # what files of these names claim to hold

    def key(self, before: Key | None, ids: Sequence[int]) -> Key:
        """The key of a block that holds `ids` and comes after the block of key `before` (None: it is the first)."""
        start, end = (before.own, before.n_tokens + len(ids)) if before else (self.fingerprint, len(ids))
        hides = self.window is not None and end > self.window + BLOCK_TOKENS
        return Key(start, digest(start, pack_ids(ids), *([str(self.window).encode()] if hides else ())), end)

    def path(self, key: Key) -> Path:
        return self._bucket(key.before) / f"{key.name}{SUFFIX}"

    def load(self, key: Key, ids: Sequence[int]) -> list[memoryview] | None:
        """The parts of a block, if it is there whole and holds `ids`. A damaged file is removed."""
        path = self.path(key)
        try:
            with open(path, "rb") as file:
                data = memoryview(file.read(most_bytes(ids, self.sizes) + 1))
        except OSError:
            return None
        found = parse(data, self.fingerprint, ids, self.sizes)
        if found is None:
            with suppress(OSError):
                path.unlink()
        return found

    def following(self, before: Key | None) -> Iterator[bytes]:
        """The packed ids that blocks after another one claim to hold; `load` finds out whether they do."""
        start = before.own if before else self.fingerprint
        prefix = f"{start.hex()}-"
        with suppress(OSError), os.scandir(self._bucket(start)) as entries:
            for entry in entries:
                if entry.name.startswith(prefix) and entry.name.endswith(SUFFIX):
                    with suppress(OSError, struct.error):
                        yield self._claimed_ids(entry)

    def read_on(self, before: Key | None, token_ids: Sequence[int], n_known: int = 0) -> Iterator[Found]:
        """What is there of `token_ids`, which come after the block `before`: full blocks, then the one that shares most
        of what comes next, if that is more than the `n_known` tokens that are known already."""
        start = 0
        while start + BLOCK_TOKENS <= len(token_ids):
            ids = tuple(token_ids[start : start + BLOCK_TOKENS])
            key = self.key(before, ids)
            parts = self.load(key, ids)
            if parts is None:
                break
            yield Found(key, ids, parts)
            before, start, n_known = key, start + BLOCK_TOKENS, 0
        wanted = pack_ids(token_ids[start : start + BLOCK_TOKENS])
        shared = [(n, packed) for packed in self.following(before) if (n := n_shared(packed, wanted)) > n_known]
        for _, packed in sorted(shared, reverse=True):
            ids = unpack_ids(packed)
            key = self.key(before, ids)
            if (parts := self.load(key, ids)) is not None:
                yield Found(key, ids, parts)
                return

    def save(self, key: Key, ids: Sequence[int], parts: Sequence[bytes], chats: Sequence[str]) -> int:
        """Keep a block of these chats, and the parts that an older file of it has besides. Gives the bytes written: 0
        where all is there already, or all of the chats were erased meanwhile. Raises OSError."""
        for _ in range(SAVE_ATTEMPTS):
            with suppress(FileNotFoundError):  # another process removed an empty folder, or what is half written
                return self._save(key, ids, parts, chats)
        return self._save(key, ids, parts, chats)

    def _save(self, key: Key, ids: Sequence[int], parts: Sequence[bytes], chats: Sequence[str]) -> int:
        chats = self._living(chats)
        if not chats:
            return 0
        known = self.load(key, ids) or [memoryview(b"")] * len(parts)
        if all(a or not b for a, b in zip(known, parts, strict=True)):
            self.claim(key, chats)
            return 0
        pieces = pack(self.fingerprint, ids, [b or bytes(a) for a, b in zip(known, parts, strict=True)])
        self._write(key, pieces, chats)
        if not self._living(chats):  # erased while this was written
            self.path(key).unlink(missing_ok=True)
            return 0
        return sum(map(len, pieces))

    def claim(self, key: Key, chats: Sequence[str]) -> None:
        """The block belongs to these chats. Raises OSError."""
        for chat in self._living(chats):
            self.claims.add(chat, [key.name])
            if is_erased(self.root, chat):
                self.claims.drop(chat)

    def touch(self, key: Key) -> None:
        """The text that ends here was used now, and with it all that it follows."""
        with suppress(OSError):
            os.utime(self.path(key))

    def _write(self, key: Key, pieces: Sequence[bytes], chats: Sequence[str]) -> None:
        path = self.path(key)
        for folder in (self.root, self.folder, path.parent):  # the mode is of the last folder that mkdir makes
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_label(self.folder, self.label)
        self.claim(key, chats)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:  # mode 0600
            try:
                file.writelines(pieces)
                file.close()
                os.replace(file.name, path)
            except BaseException:
                file.close()
                Path(file.name).unlink(missing_ok=True)
                raise

    def _claimed_ids(self, entry: os.DirEntry[str]) -> bytes:
        """Read once: a thousand chats may follow the same beginning. A block of this name never has other ids."""
        packed = self._ids.get(entry.name)
        if packed is None:
            packed = claimed_ids(Path(entry.path))
            if len(self._ids) >= REMEMBERED:
                self._ids.clear()
            self._ids[entry.name] = packed
        return packed

    def _living(self, chats: Sequence[str]) -> list[str]:
        return [chat for chat in chats if not is_erased(self.root, chat)]

    def _bucket(self, before: bytes) -> Path:
        return self.folder / before[:1].hex()

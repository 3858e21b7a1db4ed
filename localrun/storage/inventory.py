"""Inventory of the blocks on disk: by file, by model and by chat, with the codec of each chat."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.storage.claims import FOLDER, Claims, file_name, read_claims
from localrun.storage.label import IMAGES, Label, read_label

SUFFIX = ".kv"
UNFINISHED = ".tmp"  # behind that, while it is written
BUCKET_DIGITS = 3  # of what a block follows name its folder, in which a hundred thousand blocks are a few; once 2
LOCK = "lock"  # beside the fingerprints; held by a process that changes anything below the root


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """One file; `before` and `own` are the halves of its name. `last_used` in seconds since 1970."""

    fingerprint: str
    before: str
    own: str
    path: str
    nbytes: int
    last_used: float

    @property
    def name(self) -> str:
        return f"{self.before}-{self.own}"


def fingerprints(root: Path) -> list[Path]:
    """The folders of all fingerprints."""
    with suppress(OSError):
        return sorted(path for path in root.iterdir() if len(path.name) == 32 and path.is_dir())
    return []


def stored_blocks(root: Path, is_locked: bool = False) -> Iterator[StoredBlock]:
    """All blocks of all fingerprints.

    With `is_locked` the caller holds the lock, and unfinished files of dead writers are removed.
    """
    for folder in fingerprints(root):
        yield from _blocks_in(folder.name, folder, is_locked)


def _blocks_in(fingerprint: str, folder: Path | str, is_locked: bool) -> Iterator[StoredBlock]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                before, _, own = entry.name.removesuffix(SUFFIX).partition("-")
                if len(entry.name) <= BUCKET_DIGITS and entry.is_dir(follow_symlinks=False):
                    yield from _blocks_in(fingerprint, entry.path, is_locked)
                elif entry.name.endswith(SUFFIX):
                    status = entry.stat(follow_symlinks=False)
                    yield StoredBlock(fingerprint, before, own, entry.path, status.st_size, status.st_mtime)
                elif is_locked and entry.name.endswith(UNFINISHED):
                    os.unlink(entry.path)


@dataclass(frozen=True, slots=True)
class KeptChat:
    """The blocks of a chat: `shared_bytes` of `nbytes` also belong to others. `last_used` in seconds since 1970."""

    chat: str
    nbytes: int
    shared_bytes: int
    last_used: float


@dataclass(frozen=True, slots=True)
class KeptModel:
    """The blocks of one fingerprint: a model, its codec, and how it is computed."""

    fingerprint: str
    label: Label
    n_blocks: int
    nbytes: int
    last_used: float
    chats: tuple[KeptChat, ...]


def inventory(root: Path) -> list[KeptModel]:
    """The models with blocks on disk, the last used first, and the chats of each in the same order."""
    by_fingerprint: dict[str, dict[str, StoredBlock]] = {}
    for block in stored_blocks(root):
        by_fingerprint.setdefault(block.fingerprint, {})[block.name] = block
    models = [
        _model(folder, found) for folder in fingerprints(root) if (found := by_fingerprint.get(folder.name)) is not None
    ]
    return sorted(models, key=lambda model: -model.last_used)


def _model(folder: Path, blocks: dict[str, StoredBlock]) -> KeptModel:
    claims = Claims(folder)
    held = {chat: claims.of(chat) & blocks.keys() for chat in claims.chats()}
    n_chats: dict[str, int] = {}
    for names in held.values():
        for name in names:
            n_chats[name] = n_chats.get(name, 0) + 1
    chats = [
        KeptChat(
            chat,
            sum(blocks[name].nbytes for name in names),
            sum(blocks[name].nbytes for name in names if n_chats[name] > 1),
            max(blocks[name].last_used for name in names),
        )
        for chat, names in held.items()
        if names
    ]
    return KeptModel(
        folder.name,
        read_label(folder),
        len(blocks),
        sum(block.nbytes for block in blocks.values()),
        max(block.last_used for block in blocks.values()),
        tuple(sorted(chats, key=lambda chat: -chat.last_used)),
    )


@dataclass(frozen=True, slots=True)
class CodecTokens:
    """A codec, and the number of tokens of a chat stored in it, over all branches."""

    name: str
    n_tokens: int


def codec_of(root: Path, chat: str, path: Path, precision: str, numerics: int) -> CodecTokens | None:
    """The codec last written for this chat and model; None where nothing usable is stored."""
    found: list[tuple[float, CodecTokens]] = []
    for folder in fingerprints(root):
        label, claims = read_label(folder), folder / FOLDER / file_name(chat)
        is_of_model = (label.path, label.precision, label.numerics) == (str(path), precision, numerics)
        if is_of_model and label.codec != IMAGES:
            with suppress(OSError):
                n_tokens = label.block_tokens * len(read_claims(claims))
                found.append((claims.stat().st_mtime, CodecTokens(label.codec, n_tokens)))
    _, newest = max(found, key=lambda one: one[0], default=(0.0, None))
    return newest if newest is not None and newest.n_tokens else None

"""Removal of blocks from disk: those of a chat, of a model, or all."""

import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from localrun.base.errors import LocalrunError
from localrun.base.lock import locked
from localrun.base.paths import folder
from localrun.base.settings import read_settings
from localrun.base.units import gib
from localrun.storage.block_files import DISK_FOLDER
from localrun.storage.claims import Claims, mark_erased
from localrun.storage.inventory import LOCK, fingerprints, stored_blocks
from localrun.storage.trim import forget_total, tidy
from localrun.storage.weight_store import WeightStore, erase_packed


def erase_chats(root: Path, chats: Collection[str], for_good: bool = True) -> int:
    """Remove blocks that only these chats claim, and those without a claim. Returns the bytes removed.

    A block without a claim may belong to them. `for_good`: processes that still have them in memory write nothing of
    them any more. Raises OSError.
    """
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        if root.is_dir():
            raise
        return 0  # there is no folder, and it cannot be made
    with locked(root / LOCK):
        for chat in chats if for_good else ():
            mark_erased(root, chat)
        return _erase(root, chats)


def erasable_bytes(root: Path, chats: Collection[str]) -> int:
    """Bytes that would go with these chats."""
    kept = _claimed_beside(root, chats)
    return sum(block.nbytes for block in stored_blocks(root) if block.name not in kept)


def _claimed_beside(root: Path, chats: Collection[str]) -> set[str]:
    """Names of blocks that other chats claim."""
    kept: set[str] = set()
    for one in fingerprints(root):
        claims = Claims(one)
        kept.update(*(claims.of(chat) for chat in claims.chats() if chat not in chats))
    return kept


def _erase(root: Path, chats: Collection[str]) -> int:
    for one in fingerprints(root):
        for chat in chats:
            Claims(one).drop(chat)
    kept = _claimed_beside(root, ())
    blocks = list(stored_blocks(root, is_locked=True))
    gone = [block for block in blocks if block.name not in kept]
    for block in gone:
        with suppress(FileNotFoundError):
            os.unlink(block.path)
    forget_total(root)
    tidy(root, [block for block in blocks if block.name in kept])
    return sum(block.nbytes for block in gone)


def erase_fingerprints(root: Path, names: Collection[str]) -> int:
    """Remove all blocks of these fingerprints, of any chat. Returns the bytes removed. Raises OSError."""
    if not root.is_dir():
        return 0
    with locked(root / LOCK):
        return _erase_folders(root, [one for one in fingerprints(root) if one.name in names])


def erase_all(root: Path) -> int:
    if not root.is_dir():
        return 0
    with locked(root / LOCK):
        return _erase_folders(root, fingerprints(root))


def _erase_folders(root: Path, folders: Collection[Path]) -> int:
    names = {one.name for one in folders}
    nbytes = sum(block.nbytes for block in stored_blocks(root) if block.fingerprint in names)
    forget_total(root)
    for one in folders:
        shutil.rmtree(one)
    return nbytes


def erase_unwanted(setting: str) -> str:
    """Remove what a new value of a setting forbids to store. Returns a description of it.

    Raises LocalrunError.
    """
    home, settings = folder("cache"), read_settings()
    try:
        if setting == "disk_cache" and settings.disk_cache_bytes == 0:
            return f"{gib(erase_all(home / DISK_FOLDER) if home else 0)} of cached chats"
        if setting == "packed_weights" and settings.packed_weights_bytes == 0:
            return f"{gib(erase_packed(WeightStore(home).models()) if home else 0)} of packed weights"
        return ""
    except OSError as error:
        raise LocalrunError(f"{error.filename} cannot be removed: {error.strerror}", "check its permissions") from None

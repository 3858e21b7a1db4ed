"""Eviction order of the disk cache: useless blocks, then the ends of texts, least recently used first.

A block is useful only after those it follows. So it counts as used when a block after it was, and goes later.
"""

import os
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from localrun.base.files import write_whole
from localrun.base.lock import locked
from localrun.base.small_file import read_small
from localrun.storage.claims import ERASED, MARKED_SECONDS, Claims
from localrun.storage.inventory import LOCK, StoredBlock, fingerprints, stored_blocks
from localrun.storage.label import FILE as LABEL_FILE
from localrun.storage.label import NO_LABEL, Label, read_label

MAX_AGE_SECONDS = 30 * 86400  # unused for so long goes: as long as a deleted chat can be brought back
TOTAL_FILE = "total"  # beside the fingerprints: bytes, and when somebody looked last, so that a start need not
TOTAL_BYTES = 256  # of those two numbers, at most
LOOK_SECONDS = 86400  # after which it is time to look again: what was unused for a month goes, too


def trim(root: Path, budget: int, label: Label = NO_LABEL) -> tuple[int, list[StoredBlock]]:
    """Remove blocks unused for a month and those beyond the budget. Returns the bytes left and the removed blocks.

    `label` is that of the calling process: blocks that it knows to be useless go first. Raises OSError.
    """
    if not root.is_dir():
        return 0, []
    with locked(root / LOCK):
        return _trim(root, budget, label)


def _trim(root: Path, budget: int, label: Label) -> tuple[int, list[StoredBlock]]:
    dead = {folder.name for folder in fingerprints(root) if label.outlives(read_label(folder))}
    blocks = list(stored_blocks(root, is_locked=True))
    left = sum(block.nbytes for block in blocks)
    oldest = time.time() - MAX_AGE_SECONDS
    removed, kept = [], []
    for block, last_used in in_order(blocks, dead):
        if (left > budget or last_used < oldest) and remove(block):
            left -= block.nbytes
            removed.append(block)
        else:
            kept.append(block)
    if removed:
        tidy(root, kept)
    return left, removed


def in_order(blocks: Sequence[StoredBlock], dead: Collection[str] = ()) -> list[tuple[StoredBlock, float]]:
    """All blocks in the order of removal, each with the last use of itself or of a block after it."""
    known = {(block.fingerprint, block.own): block for block in blocks}
    depths = _depths(known)
    used: dict[tuple[str, str], float] = {}
    for block in sorted(blocks, key=lambda one: one.last_used, reverse=True):
        key = block.fingerprint, block.own
        while key in known and key not in used:
            used[key] = block.last_used
            key = block.fingerprint, known[key].before

    def place(block: StoredBlock) -> tuple[bool, bool, float, int]:
        key = block.fingerprint, block.own
        return block.fingerprint not in dead, depths[key] > 0, used[key], -depths[key]

    return [(block, used[block.fingerprint, block.own]) for block in sorted(known.values(), key=place)]


def _depths(known: dict[tuple[str, str], StoredBlock]) -> dict[tuple[str, str], int]:
    """Number of blocks up to each one; 0 where one before it is missing."""
    depths: dict[tuple[str, str], int] = {}
    for key in known:
        way = []
        while key in known and key not in depths:
            way.append(key)
            depths[key] = 0  # for names that go round in a circle
            key = key[0], known[key].before
        depth = depths.get(key, 0)
        begins = key[0] == key[1]  # the first block of a text follows the fingerprint
        for one in reversed(way):
            depth = depths[one] = depth + 1 if depth or begins else 0
    return depths


def remove(block: StoredBlock) -> bool:
    """Remove a block; False where that fails."""
    try:
        os.unlink(block.path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def tidy(root: Path, left: Sequence[StoredBlock]) -> None:
    """Remove claims on missing blocks, empty folders, and old marks of erased chats.

    The caller holds the lock of the root.
    """
    names: dict[str, set[str]] = {}
    for block in left:
        names.setdefault(block.fingerprint, set()).add(block.name)
    for folder in fingerprints(root):
        _drop_claims(Claims(folder), names.get(folder.name, set()))
        if folder.name not in names:
            _remove_empty(folder)
    with suppress(OSError):
        for mark in (root / ERASED).iterdir():
            if mark.stat().st_mtime < time.time() - MARKED_SECONDS:
                mark.unlink()


def _drop_claims(claims: Claims, names: set[str]) -> None:
    """Drop the claims of chats none of whose blocks is among `names`."""
    for chat in claims.chats():
        if claims.of(chat).isdisjoint(names):
            with suppress(OSError):
                claims.drop(chat)


def _remove_empty(folder: Path) -> None:
    """Remove the folder of a fingerprint without blocks; it stays where claims of chats are left in it."""
    with suppress(OSError):
        (folder / LABEL_FILE).unlink(missing_ok=True)
        for path in (*folder.iterdir(), folder):
            path.rmdir()


def known_total(root: Path) -> int | None:
    """Bytes of all blocks at the last count; None where a new count is due."""
    nbytes, looked = _read_total(root)
    return nbytes if 0 <= time.time() - looked < LOOK_SECONDS else None


def note_total(root: Path, nbytes: int, looked: bool = False) -> None:
    """Store the bytes of all blocks.

    `looked`: they were counted just now. Writes of other processes are missed until the next count. Raises OSError.
    """
    if root.is_dir():
        write_whole(root / TOTAL_FILE, f"{nbytes} {time.time() if looked else _read_total(root)[1]}")


def forget_total(root: Path) -> None:
    with suppress(OSError):
        (root / TOTAL_FILE).unlink()


def _read_total(root: Path) -> tuple[int, float]:
    with suppress(OSError, ValueError):
        nbytes, looked = read_small(root / TOTAL_FILE, TOTAL_BYTES).decode("ascii").split()
        return int(nbytes), float(looked)
    return 0, 0.0

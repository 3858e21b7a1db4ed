"""The blocks on disk, as a look into the folder shows them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".kv"
UNFINISHED = ".tmp"  # behind that, while it is written
BUCKET_DIGITS = 3  # of what a block follows name its folder, in which a hundred thousand blocks are a few; once 2
LOCK = "lock"  # beside the fingerprints: whoever changes anything below the root holds it


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
    """All blocks of all fingerprints. Where the caller has it locked, what writers that died left unfinished goes."""
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

"""The blocks on disk, as a look into the folder shows them."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".kv"
STALE_SECONDS = 3600  # after which the temporary file of a process that died is removed


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


def stored_blocks(root: Path, stale_seconds: float = STALE_SECONDS) -> Iterator[StoredBlock]:
    """All blocks of all fingerprints. Removes what writers that died left unfinished so long ago."""
    for folder in fingerprints(root):
        yield from _blocks_in(folder.name, folder, stale_seconds)


def _blocks_in(fingerprint: str, folder: Path | str, stale_seconds: float) -> Iterator[StoredBlock]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                before, _, own = entry.name.removesuffix(SUFFIX).partition("-")
                if len(entry.name) == 2 and entry.is_dir(follow_symlinks=False):
                    yield from _blocks_in(fingerprint, entry.path, stale_seconds)
                elif entry.name.endswith(SUFFIX):
                    status = entry.stat(follow_symlinks=False)
                    yield StoredBlock(fingerprint, before, own, entry.path, status.st_size, status.st_mtime)
                elif entry.name.endswith(".tmp") and entry.stat().st_mtime < time.time() - stale_seconds:
                    os.unlink(entry.path)

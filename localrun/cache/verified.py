"""Which packed weights were read back from the disk and found whole: once for each version of a file."""

import json
from contextlib import suppress
from pathlib import Path

from localrun.base.files import write_whole
from localrun.base.lock import locked
from localrun.base.small_file import read_small
from localrun.formats.packed_file import LOCK

FILE = "verified.json"  # in the folder of a model: what each file was known by then
MOST_BYTES = 16 << 20


def read_verified(folder: Path) -> dict[str, list[int]]:
    """By the names of files what they were known by; empty where nothing can be read."""
    with suppress(OSError, ValueError, RecursionError):
        read = json.loads(read_small(folder / FILE, MOST_BYTES))
        return read if isinstance(read, dict) else {}
    return {}


def note_verified(folder: Path, stamps: dict[str, list[int]]) -> None:
    """Add these, where anything can be written; other processes may do so, too."""
    with suppress(OSError), locked(folder / LOCK):
        write_whole(folder / FILE, json.dumps(read_verified(folder) | stamps))

"""Which packed weights were read back from the disk and found whole: once for each version of a file."""

import json
from contextlib import suppress
from pathlib import Path

from localrun.base.files import write_whole
from localrun.base.lock import locked
from localrun.base.state_file import read_state
from localrun.formats.packed_file import LOCK

FILE = "verified.json"  # in the folder of a model: what each file was known by then


def read_verified(folder: Path) -> dict[str, list[int]]:
    """By the names of files what they were known by; empty where nothing can be read."""
    return read_state(folder / FILE)


def note_verified(folder: Path, stamps: dict[str, list[int]]) -> None:
    """Add these, where anything can be written; other processes may do so, too."""
    with suppress(OSError), locked(folder / LOCK):
        write_whole(folder / FILE, json.dumps(read_verified(folder) | stamps))

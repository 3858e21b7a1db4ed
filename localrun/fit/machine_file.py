"""The file in which measurements of machines are kept: an object with a row for each."""

import json
from contextlib import suppress
from typing import Any

from localrun.base.files import write_whole
from localrun.base.paths import folder, writable_folder

FILE_NAME = "machine.json"


def read_machine() -> dict[str, Any]:
    """All rows: a home folder may be that of several machines. Empty where there is no such file."""
    home = folder("cache")
    with suppress(OSError, ValueError):
        found = json.loads((home / FILE_NAME).read_text("utf-8")) if home is not None else None
        if isinstance(found, dict):
            return found
    return {}


def write_machine(key: str, row: dict[str, Any]) -> None:
    """Put a row in, whole or not at all: another process may read or write meanwhile."""
    home = writable_folder("cache")
    if home is not None:
        with suppress(OSError):
            write_whole(home / FILE_NAME, json.dumps({**read_machine(), key: row}))

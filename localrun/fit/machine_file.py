"""The file in which measurements of machines are kept: an object with a row for each."""

from typing import Any

from localrun.base.paths import folder, writable_folder
from localrun.base.state_file import change_state, read_state

FILE_NAME = "machine.json"


def read_machine() -> dict[str, Any]:
    """All rows: a home folder may be that of several machines. Empty where there is no such file."""
    home = folder("cache")
    return read_state(home / FILE_NAME) if home is not None else {}


def write_machine(key: str, row: dict[str, Any]) -> None:
    """Put a row in, whole or not at all: another process may read or write meanwhile."""
    home = writable_folder("cache")
    if home is not None:
        change_state(home / FILE_NAME, lambda rows: {**rows, key: row})

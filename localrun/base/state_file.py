"""JSON objects on disk in which programs note what they found out.

They are caches: a damaged one counts as empty and is rewritten.
"""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from localrun.base.files import remove_unfinished, write_whole
from localrun.base.lock import locked
from localrun.base.small_file import read_small

MAX_BYTES = 4 << 20
MAX_DIGITS = 40  # of a whole number: times in ns and inodes have fewer
LOCK = "state.lock"  # beside the files


def read_state(path: Path | None) -> dict[str, Any]:
    """Contents of a state file; empty where there is none, or none that can be read. Every number is finite."""
    with suppress(OSError, ValueError, RecursionError):
        data = read_small(path, MAX_BYTES) if path else b"{}"
        value = json.loads(data, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
        if isinstance(value, dict):
            return value
    return {}


def change_state(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Put what `change` makes of it in the place of what a file holds. Others wait meanwhile, so that nothing they note
    is lost. Where nothing can be written, nothing is noted."""
    with suppress(OSError, ValueError), locked(path.parent / LOCK):
        remove_unfinished(path.parent)
        write_whole(path, json.dumps(change(read_state(path)), allow_nan=False))


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError("too large a number")
    return int(digits)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value

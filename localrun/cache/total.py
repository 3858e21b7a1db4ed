"""How many bytes the disk cache takes, written down so that a start need not look through all of its files."""

import time
from contextlib import suppress
from pathlib import Path

from localrun.base.files import write_whole
from localrun.base.small_file import read_small

MAX_BYTES = 256  # of two numbers
FILE = "total"  # beside the fingerprints: bytes, and when somebody looked last
LOOK_SECONDS = 86400  # after which it is time to look again: what nobody used for a month goes, too


def known_total(root: Path) -> int | None:
    """None where somebody should look."""
    nbytes, looked = _read(root)
    return nbytes if 0 <= time.time() - looked < LOOK_SECONDS else None


def note_total(root: Path, nbytes: int, looked: bool = False) -> None:
    """`looked`: counted just now. What others write meanwhile is missed until somebody looks. Raises OSError."""
    if root.is_dir():
        write_whole(root / FILE, f"{nbytes} {time.time() if looked else _read(root)[1]}")


def forget_total(root: Path) -> None:
    with suppress(OSError):
        (root / FILE).unlink()


def _read(root: Path) -> tuple[int, float]:
    with suppress(OSError, ValueError):
        nbytes, looked = read_small(root / FILE, MAX_BYTES).decode("ascii").split()
        return int(nbytes), float(looked)
    return 0, 0.0

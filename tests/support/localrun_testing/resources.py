"""How much memory a piece of code needs at its peak."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(slots=True)
class Growth:
    """Bytes by which the resident set grew at its highest; 0 where the system cannot say."""

    bytes: int = 0


@contextmanager
def peak_growth() -> Iterator[Growth]:
    """Measure the block's peak resident memory above what was resident before (Linux; elsewhere 0)."""
    growth = Growth()
    if not CLEAR.exists():
        yield growth
        return
    CLEAR.write_text("5")  # the high-water mark starts anew
    before = _resident("VmRSS")
    try:
        yield growth
    finally:
        growth.bytes = _resident("VmHWM") - before


def _resident(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])

"""Facts about the machine from macOS, without torch."""

from __future__ import annotations

import platform
import re
from functools import cache

from localrun.base.macos import sysctl_text

# Families of Apple GPUs by the chip of a Mac: M1 is Apple7, M2 Apple8, M3 and M4 Apple9, M5 and later Apple10 at least.
FAMILIES = {1: 7, 2: 8, 3: 9, 4: 9}
LATEST_FAMILY = 10


@cache
def chip() -> str:
    """Name of the chip as macOS has it: Apple M2 Max."""
    return sysctl_text("machdep.cpu.brand_string") or platform.processor() or platform.machine()


def family(chip_name: str) -> int:
    """Family of Apple GPUs; that of the M1, which every Mac supports, for an unknown name."""
    found = re.match(r"Apple M(\d+)", chip_name)
    return FAMILIES.get(int(found[1]), LATEST_FAMILY) if found else 7


def macos() -> tuple[int, ...]:
    """The version: (15, 3, 1)."""
    return tuple(int(part) for part in platform.mac_ver()[0].split(".") if part.isdigit())

"""Which boot of this machine it is: what was written in this one is there to read, in memory if not on the disk."""

from functools import cache

import psutil

_ROUGH_SECONDS = 30  # clocks are set while a machine runs


@cache
def boot_id() -> str:
    """The same for every process until the machine is started again; different afterwards."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return f"boot at {round(psutil.boot_time() / _ROUGH_SECONDS)}"

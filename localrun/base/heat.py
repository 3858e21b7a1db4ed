"""How long the processor was slowed down because it was hot. Torch-free."""

from pathlib import Path

from localrun.base.processors import CPUS

FILES = ("core_throttle_total_time_ms", "package_throttle_total_time_ms")


def throttled_seconds(processors: Path = CPUS) -> float:
    """Since the system started, of the processor that was slowed down longest; 0 where the system does not count it.

    Linux counts it on Intel's; source: the kernel's documentation of /sys/devices/system/cpu/cpuX/thermal_throttle.
    """
    found = [_milliseconds(folder / name) for folder in processors.glob("cpu[0-9]*/thermal_throttle") for name in FILES]
    return max(found, default=0) / 1000


def _milliseconds(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0

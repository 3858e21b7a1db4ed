"""What memory this machine has left, and how many threads are worth starting. Torch-free."""

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from localrun.fit.cgroup import cpu_quota, memory_left

STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of main memory; both also respect the limit a container sets."""

    total: int
    available: int


def memory() -> Memory:
    """Main memory now."""
    system = psutil.virtual_memory()
    total, available = int(system.total), int(system.available)
    limited = memory_left()
    if limited is not None and limited[0] < total:
        total, available = limited[0], min(available, limited[1])
    return Memory(total, available)


def resident() -> int:
    """Bytes this process holds in main memory now."""
    return int(psutil.Process().memory_info().rss)


def cpu_limit() -> int:
    """Threads worth starting: physical cores, but no more than affinity and quota allow."""
    counts = [psutil.cpu_count(logical=False) or psutil.cpu_count() or 1]
    if sys.platform == "linux":
        counts.append(len(psutil.Process().cpu_affinity()))
    quota = cpu_quota()
    if quota is not None:
        counts.append(quota)
    return max(1, min(counts))


def peak_rss() -> int:
    """The most resident memory this process has had, in bytes."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    with suppress(OSError, ValueError, IndexError):  # Linux; getrusage would count the program that started us too
        return int(STATUS.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

"""What memory this machine has left. Torch-free."""

import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of main memory; `available` also respects the limit a container sets."""

    total: int
    available: int


def memory() -> Memory:
    """Main memory now."""
    system = psutil.virtual_memory()
    total, available = int(system.total), int(system.available)
    limit, used = _cgroup_bytes("memory.max"), _cgroup_bytes("memory.current")
    if limit is not None and limit < total:
        total = limit
        available = min(available, max(0, limit - (used or 0)))
    return Memory(total, available)


def cpu_limit() -> int:
    """Threads worth starting: physical cores, but no more than affinity and quota allow."""
    counts = [psutil.cpu_count(logical=False) or psutil.cpu_count() or 1]
    if sys.platform == "linux":
        counts.append(len(psutil.Process().cpu_affinity()))
    quota = _cgroup_quota()
    if quota is not None:
        counts.append(quota)
    return max(1, min(counts))


def peak_rss() -> int:
    """The most resident memory this process has had, in bytes."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _cgroup_bytes(name: str) -> int | None:
    text = _cgroup_text(name)
    return int(text) if text is not None and text.isdigit() else None


def _cgroup_quota() -> int | None:
    quota, _, period = (_cgroup_text("cpu.max") or "").partition(" ")
    if not (quota.isdigit() and period.isdigit() and int(period)):
        return None
    return max(1, int(quota) // int(period))


def _cgroup_text(name: str) -> str | None:
    try:
        return (CGROUP / name).read_text().strip()
    except OSError:
        return None

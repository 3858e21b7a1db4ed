"""What memory this machine has left, and how many threads are worth starting. Torch-free."""

import platform
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import psutil

from localrun.base.cgroup import cpu_quota, memory_left
from localrun.base.units import gib

STATUS = Path("/proc/self/status")
CPUS = Path("/sys/devices/system/cpu")
NODES = Path("/sys/devices/system/node")
ADDRESSES = "`ulimit -v`"
UNUSED_ADDRESSES = 640 << 20  # taken and never touched: stacks, arenas of the C library, the last piece of weights


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of main memory, or of the part of it that something allows; `limit` says what.

    `counts_files`: what is mapped of files takes of it, too.
    """

    total: int
    available: int
    limit: str = ""
    counts_files: bool = False


def memory() -> Memory:
    """Main memory now."""
    system = psutil.virtual_memory()
    machine = Memory(int(system.total), int(system.available))
    limits = [
        Memory(*left, f"a limit of {gib(left[0])} set by {what}", counts_files=what == ADDRESSES)
        for what, left in _limits()
    ]
    tightest = min((one for one in limits if one.total < machine.total), key=lambda one: one.available, default=machine)
    return replace(tightest, available=min(tightest.available, machine.available))


def _limits() -> Iterator[tuple[str, tuple[int, int]]]:
    """What limits this process, and (limit, what is left of it)."""
    group = memory_left()
    if group is not None:
        yield "a control group", group
    if sys.platform == "linux":
        import resource

        used = psutil.Process().memory_info()
        for what, number, now in (
            (ADDRESSES, resource.RLIMIT_AS, used.vms),
            ("`ulimit -d`", resource.RLIMIT_DATA, used.data),
        ):
            soft, _ = resource.getrlimit(number)
            if soft != resource.RLIM_INFINITY:
                yield what, (soft, max(0, soft - now - UNUSED_ADDRESSES))


def resident() -> int:
    """Bytes this process holds in main memory now."""
    return int(psutil.Process().memory_info().rss)


@cache
def cpu_name() -> str:
    """The processor, as it calls itself."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cpu_limit() -> int:
    """Threads worth starting: physical cores, but no more than affinity and quota allow."""
    counts = [psutil.cpu_count(logical=False) or psutil.cpu_count() or 1]
    if sys.platform == "linux":
        counts.append(physical_cores(psutil.Process().cpu_affinity()))
    quota = cpu_quota()
    if quota is not None:
        counts.append(quota)
    return max(1, min(counts))


def physical_cores(processors: Iterable[int]) -> int:
    """How many cores these processors of Linux are on: two threads of a core share its units."""
    cores = set()
    for number in processors:
        try:
            cores.add((CPUS / f"cpu{number}" / "topology" / "thread_siblings_list").read_text().strip())
        except OSError:
            cores.add(str(number))
    return len(cores)


def memory_nodes() -> int:
    """Parts of main memory that are nearer to some cores than to others (NUMA)."""
    return max(1, len(list(NODES.glob("node[0-9]*"))))


def peak_rss() -> int:
    """The most resident memory this process has had, in bytes."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    with suppress(OSError, ValueError, IndexError):  # Linux; getrusage would count the program that started us too
        return int(STATUS.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

"""Memory of this machine, total and free. Torch-free."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from localrun.base.cgroup import memory_left
from localrun.base.dataclass import dataclass
from localrun.base.macos import sysctl_number
from localrun.base.units import gib

STATUS = Path("/proc/self/status")
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
    """Main memory now. Available is what programs can have before the system writes others' memory out."""
    system = psutil.virtual_memory()
    machine = Memory(int(system.total), _unused_on_macos() or int(system.available))
    limits = [
        Memory(*left, f"a limit of {gib(left[0])} set by {what}", counts_files=what == ADDRESSES)
        for what, left in _limits()
    ]
    tightest = min((one for one in limits if one.total < machine.total), key=lambda one: one.available, default=machine)
    return replace(tightest, available=min(tightest.available, machine.available))


def _unused_on_macos() -> int | None:
    """Free pages, and those of files and caches, which are dropped; None elsewhere.

    psutil counts what was not used for a while, but half of that are other programs' own data.
    """
    if sys.platform != "darwin":
        return None
    pages = [sysctl_number(f"vm.page_{kind}_count") for kind in ("free", "pageable_external", "purgeable")]
    size = sysctl_number("vm.pagesize")
    return size * sum(n or 0 for n in pages) if size and pages[0] else None


def _limits() -> Iterator[tuple[str, tuple[int, int]]]:
    """Limits of this process by name, as (limit, bytes left of it)."""
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


def peak_rss() -> int:
    """The most resident memory this process has had, in bytes."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    with suppress(OSError, ValueError, IndexError):  # Linux; getrusage would count the program that started us too
        return int(STATUS.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

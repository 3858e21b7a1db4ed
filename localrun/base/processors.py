"""Which processors this process may use, and how many threads are worth starting on them. Torch-free."""

import math
import os
import platform
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

from localrun.base.cgroup import cpu_quota
from localrun.base.macos import sysctl_number, sysctl_text

CPU_INFO = Path("/proc/cpuinfo")
CPU_KEY = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"  # of Windows' registry
CPUS = Path("/sys/devices/system/cpu")
THROTTLED = ("core_throttle_total_time_ms", "package_throttle_total_time_ms")
NODES = Path("/sys/devices/system/node")
SPEEDS = ("cpu_capacity", "cpufreq/cpuinfo_max_freq")  # where Linux says how fast a processor is beside the others
WORTH_IT = 0.5  # of the fastest core's speed: one that is slower holds up the last task of a phase


@cache
def cpu_name() -> str:
    """The processor, as it calls itself."""
    name = ""
    with suppress(OSError):
        if sys.platform == "darwin":
            name = sysctl_text("machdep.cpu.brand_string")
        elif sys.platform == "win32":
            import winreg

            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, CPU_KEY) as key:
                name = str(winreg.QueryValueEx(key, "ProcessorNameString")[0])
        else:
            lines = CPU_INFO.read_text().splitlines()
            name = next((line.partition(":")[2] for line in lines if line.startswith("model name")), "")
    return name.strip() or platform.processor() or platform.machine()


def usual_threads() -> int:
    """Threads worth starting: one a core, but for slow cores, and no more than affinity and quota allow."""
    counts = [psutil.cpu_count(logical=False) or psutil.cpu_count() or 1]
    if sys.platform == "darwin":
        counts.append(sysctl_number("hw.perflevel0.physicalcpu") or counts[0])  # Intel's have no levels
    elif sys.platform == "win32":
        counts.append(len(usable_processors()))
    elif sys.platform == "linux":
        counts.append(physical_cores(fast_processors(usable_processors())))
    quota = cpu_quota()
    if quota is not None:
        counts.append(math.floor(quota))
    return max(1, min(counts))


def most_threads() -> int:
    """Threads that can run at once: more would only take turns."""
    quota = cpu_quota()
    n_processors = len(usable_processors())
    return n_processors if quota is None else min(n_processors, math.ceil(quota))


def usable_processors() -> list[int]:
    """The numbers of the processors that this process may use."""
    if sys.platform == "darwin":  # which has no affinity
        return list(range(psutil.cpu_count() or 1))
    return list(psutil.Process().cpu_affinity())


def fast_processors(processors: Iterable[int]) -> list[int]:
    """Processors on Linux at least half as fast as the fastest; all where their speed is unknown."""
    numbers = list(processors)
    for name in SPEEDS:
        with suppress(OSError, ValueError):
            speeds = [int((CPUS / f"cpu{number}" / name).read_text()) for number in numbers]
            return [number for number, speed in zip(numbers, speeds, strict=True) if speed >= WORTH_IT * max(speeds)]
    return numbers


def physical_cores(processors: Iterable[int]) -> int:
    """How many cores these processors of Linux are on: two threads of a core share its units."""
    cores = set()
    for number in processors:
        try:
            cores.add((CPUS / f"cpu{number}" / "topology" / "thread_siblings_list").read_text().strip())
        except OSError:
            cores.add(str(number))
    return len(cores)


def memory_nodes() -> list[list[int]]:
    """The usable processors near each part of main memory (NUMA); in one list where the system tells of no parts."""
    usable = set(usable_processors())
    lists = (node / "cpulist" for node in sorted(NODES.glob("node[0-9]*")))
    nodes = [sorted(usable & numbers(path.read_text())) for path in lists if path.is_file()]
    return [node for node in nodes if node] or [sorted(usable)]


def numbers(text: str) -> set[int]:
    """Numbers of a list as Linux writes it: "0-3,8"."""
    spans = (span.partition("-") for span in text.strip().split(",") if span)
    return {number for first, _, last in spans for number in range(int(first), int(last or first) + 1)}


def let_others_go_first() -> None:
    """Give this thread only the processor time that others leave."""
    if sys.platform == "linux":  # where a thread has a priority of its own
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


def throttled_seconds(processors: Path = CPUS) -> float:
    """Since the system started, of the processor that was slowed down longest; 0 where the system does not count it.

    Linux counts it on Intel's; source: the kernel's documentation of /sys/devices/system/cpu/cpuX/thermal_throttle.
    """
    found = [
        _milliseconds(folder / name) for folder in processors.glob("cpu[0-9]*/thermal_throttle") for name in THROTTLED
    ]
    return max(found, default=0) / 1000


def _milliseconds(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0

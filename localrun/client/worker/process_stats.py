"""Statistics of a process from the system: memory, stopped or not, CPU time.

`pid` None is a process that was never started. A process that has ended has no statistics.
"""

from contextlib import suppress


def held_bytes(pid: int | None) -> int:
    """Main memory that is free again once it has ended; 0 when it has. Shared pages do not count."""
    import psutil

    with suppress(psutil.Error):
        info = psutil.Process(pid).memory_info() if pid is not None else None
        return int(info.rss - getattr(info, "shared", 0)) if info else 0  # where that is unknown, code counts too
    return 0


def is_stopped(pid: int | None) -> bool:
    """Whether the process is stopped by a signal."""
    import psutil

    with suppress(psutil.Error):
        return pid is not None and psutil.Process(pid).status() == psutil.STATUS_STOPPED
    return False


def cpu_seconds(pid: int | None) -> float:
    """CPU time of all its threads; 0 when it has ended."""
    import psutil

    with suppress(psutil.Error):
        if pid is not None:
            times = psutil.Process(pid).cpu_times()
            return times.user + times.system
    return 0.0

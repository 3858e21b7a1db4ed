"""Whether a process that a note on disk names still runs: numbers of processes are used again."""


def is_running(pid: int, started: float) -> bool:
    """Whether process `pid` runs and began at `started`, in seconds since the epoch, give or take one."""
    import psutil  # here: the first frame of the app does without it

    try:
        return abs(psutil.Process(pid).create_time() - started) < 1.0
    except (psutil.Error, OSError, ValueError, OverflowError):
        return False

"""Marks that say which process a note on disk is of, and whether that one still runs."""

import os
from functools import cache

from localrun.base.running_process import is_running


@cache
def own_mark() -> str:
    """The number of this process and when it began: numbers are used again."""
    import psutil  # here: the first frame does without it

    return f"{os.getpid()}-{int(psutil.Process().create_time())}"


def runs_elsewhere(mark: str) -> bool:
    """Whether a mark is of another process that still runs; False for one that is no mark."""
    number, _, began = mark.partition("-")
    if mark == own_mark() or not (number.isdecimal() and began.isdecimal()):
        return False
    return is_running(int(number), int(began))

"""The first steps of a process, and its last: look for garbage less often, leave a folder that was deleted."""

import gc
import os
from contextlib import suppress

CONTAINERS = 200_000  # allocations, less what was freed, before the youngest are collected; Python's default is 700
EMPTY = ("/proc/self/fdinfo", "/var/empty")  # where no relative path leads anywhere, and nobody can make a file


def look_less_often() -> None:
    """Make the garbage collector look less often, for a program that starts.

    Starting makes hundreds of thousands of objects that all stay: modules, a vocabulary. Looking through them took a
    fifth of the time to the first token. Only cycles wait longer to be freed.
    """
    gc.set_threshold(CONTAINERS)


def keep_garbage() -> None:
    """Make the garbage collector pass over everything, for a process that ends.

    Its memory goes to the system as a whole; looking once more through all objects took a sixth of
    the time of a short answer.
    """
    gc.freeze()


def leave_deleted_folder() -> None:
    """Go where there is a folder: without one, libraries of torch end the process, and no path can be made absolute."""
    try:
        os.getcwd()
    except OSError:
        for folder in EMPTY:
            with suppress(OSError):
                return os.chdir(folder)

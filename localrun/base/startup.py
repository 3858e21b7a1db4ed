"""The first steps of a process, and its last: garbage, threads, a folder that was deleted."""

import gc
import os
import sys
from contextlib import suppress

CONTAINERS = 200_000  # allocations, less what was freed, before the youngest are collected; Python's default is 700
SWITCH_SECONDS = 0.0005  # that a Python thread keeps the lock while another wants it; Python's default is 0.005
EMPTY = ("/proc/self/fdinfo", "/var/empty")  # where no relative path leads anywhere, and nobody can make a file


def look_less_often() -> None:
    """Make the garbage collector look less often, for a program that starts.

    Starting makes hundreds of thousands of objects that all stay: modules, a vocabulary. Looking through them took a
    fifth of the time to the first token. Only cycles wait longer to be freed.
    """
    gc.set_threshold(CONTAINERS)


def switch_threads_often() -> None:
    """Make threads of Python take turns in less than a step, for a process whose threads pass an answer on."""
    sys.setswitchinterval(SWITCH_SECONDS)


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

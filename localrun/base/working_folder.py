"""The folder a program was started in, which may have been deleted since."""

import os
from contextlib import suppress

EMPTY = ("/proc/self/fdinfo", "/var/empty")  # where no relative path leads anywhere, and nobody can make a file


def leave_deleted_folder() -> None:
    """Go where there is a folder: without one, libraries of torch end the process, and no path can be made absolute."""
    try:
        os.getcwd()
    except OSError:
        for folder in EMPTY:
            with suppress(OSError):
                return os.chdir(folder)

"""What a training asks of the system's memory allocator: glibc's defaults cost it a fifth of its time."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

# What is freed is kept, in huge pages, instead of being taken anew at every step.
KEPT = {"hugetlb": 1, "mmap_threshold": 2**30, "trim_threshold": 2**33, "top_pad": 2**26}


def keep_memory() -> None:
    """For the processes started from now on; other systems pay no heed to it."""
    os.environ["GLIBC_TUNABLES"] = ":".join(f"glibc.malloc.{name}={value}" for name, value in KEPT.items())


def give_memory_back() -> None:
    """Batches of ever other sizes leave gaps on glibc's heap, gigabytes in half an hour: what lies free goes back."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)

"""The probes measure something plausible on every instruction set, and refuse what cannot be measured."""

import ctypes
import mmap
import os
import sys
from ctypes import c_double, c_int, c_int32, c_int64, c_void_p
from pathlib import Path

import pytest
from localrun_testing.native import BAD_ARGUMENT, OK, isas, native_library

MIB = 1 << 20


@pytest.fixture
def library() -> ctypes.CDLL:
    native = native_library()
    native.lr_first_touch.argtypes, native.lr_first_touch.restype = (c_void_p, c_void_p, c_int64), c_int
    native.lr_probe_read.argtypes, native.lr_probe_read.restype = (c_void_p, c_void_p, c_int64), c_double
    native.lr_probe_multiply.argtypes, native.lr_probe_multiply.restype = (c_void_p, c_int32), c_double
    return native


def test_probes_are_plausible(library: ctypes.CDLL) -> None:
    before = library.lr_isa()
    threads = library.lr_threads_create(2)
    size = 8 * MIB + 100
    start = library.lr_reserve(size)
    assert library.lr_commit(start, size) == OK
    assert library.lr_first_touch(threads, start, size) == OK
    for isa in isas(library):
        library.lr_use_isa(isa.encode())
        for kind in (0, 1):
            assert 1e8 < library.lr_probe_multiply(threads, kind) < 1e14
        assert 1e7 < library.lr_probe_read(threads, start, size) < 1e13
    library.lr_use_isa(before)
    library.lr_release(start, size)
    library.lr_threads_destroy(threads)


@pytest.mark.skipif(sys.platform != "linux", reason="only linux counts the pages of a thread: not windows, not macos")
def test_every_thread_touches_its_share_of_memory_first(library: ctypes.CDLL) -> None:
    """So that its share of a matrix lies near it."""
    others = set(os.listdir("/proc/self/task"))
    threads = library.lr_threads_create(3)
    pages, size = 300, 300 * mmap.PAGESIZE
    start = library.lr_reserve(size)
    assert library.lr_commit(start, size) == OK
    workers = [Path("/proc/self/task", number, "stat") for number in set(os.listdir("/proc/self/task")) - others]
    before = [page_faults(worker) for worker in workers]
    assert library.lr_first_touch(threads, start, size) == OK
    touched = [page_faults(worker) - count for worker, count in zip(workers, before, strict=True)]
    assert len(workers) == 2
    assert all(pages // 3 <= count < pages // 3 + 20 for count in touched), touched
    library.lr_threads_destroy(threads)
    library.lr_release(start, size)


def page_faults(stat: Path) -> int:
    """Of a thread, without such as waited for a disk."""
    return int(stat.read_text().rpartition(")")[2].split()[7])


def test_what_cannot_be_measured_is_refused(library: ctypes.CDLL) -> None:
    threads = library.lr_threads_create(1)
    memory = ctypes.create_string_buffer(64)
    assert library.lr_first_touch(threads, None, 64) == BAD_ARGUMENT
    assert library.lr_first_touch(threads, memory, 0) == BAD_ARGUMENT
    assert library.lr_first_touch(None, memory, 64) == BAD_ARGUMENT
    for refused in ((threads, None, 64), (threads, memory, -1), (None, memory, 64)):
        assert library.lr_probe_read(*refused) == -1.0
    assert library.lr_probe_multiply(threads, 2) == -1.0
    assert library.lr_probe_multiply(None, 0) == -1.0
    library.lr_threads_destroy(threads)


def test_first_touch_zeroes_every_byte(library: ctypes.CDLL) -> None:
    threads = library.lr_threads_create(3)
    for size in (1, MIB, MIB + 1, 3 * MIB - 5):
        memory = ctypes.create_string_buffer(b"x" * (size + 1), size + 1)
        assert library.lr_first_touch(threads, memory, size) == OK
        assert memory.raw == bytes(size) + b"x"
    library.lr_threads_destroy(threads)

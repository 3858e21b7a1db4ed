"""Pages of mapped weights: read from the disk when they are asked for, there at once when they have to be."""

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localrun.backends.cpu.library import load_library

PAGES = 1000
pytestmark = [
    pytest.mark.skipif(load_library() is None, reason="the native library asks for them"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages are there"),
]


@pytest.fixture
def mapped(tmp_path: Path) -> Iterator[mmap.mmap]:
    """Of a file of which nothing is in memory."""
    with open(tmp_path / "weights", "w+b") as file:
        file.write(os.urandom(PAGES * mmap.PAGESIZE))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(file.fileno(), 0) as mapping:
            if n_there(mapping):
                pytest.skip("this file system keeps its files in memory")
            yield mapping


def address_of(mapping: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(mapping))


def n_there(mapping: mmap.mmap) -> int:
    there = (ctypes.c_ubyte * PAGES)()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(address_of(mapping)), ctypes.c_size_t(len(mapping)), there) == 0
    return sum(page & 1 for page in there)


def call(name: str, mapping: mmap.mmap) -> None:
    library = load_library()
    assert library is not None
    function = getattr(library.cdll, name)
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_int64), None
    function(address_of(mapping), len(mapping))


def test_what_is_told_is_read_meanwhile(mapped: mmap.mmap) -> None:
    call("lr_will_read", mapped)
    deadline = time.monotonic() + 30
    while n_there(mapped) < PAGES and time.monotonic() < deadline:
        time.sleep(0.01)
    assert n_there(mapped) == PAGES


def test_a_hole_among_pages_that_are_there_is_read(mapped: mmap.mmap) -> None:
    mapped.madvise(mmap.MADV_RANDOM)  # no more than what is touched
    for page in {*range(PAGES)} - {700}:
        mapped[page * mmap.PAGESIZE]
    assert n_there(mapped) == PAGES - 1
    test_what_is_told_is_read_meanwhile(mapped)


def test_all_are_there_once_they_have_to_be(mapped: mmap.mmap) -> None:
    call("lr_populate", mapped)
    assert n_there(mapped) == PAGES

"""Limits of this machine, measured by the library's own threads. Torch-free."""

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

from localrun.backends.cpu import abi
from localrun.backends.cpu.bindings import calls_of, start_threads
from localrun.backends.cpu.library import load_library
from localrun.backends.limits import Limits

READ_BYTES = 256 << 20  # far more than any cache holds


class CpuLimitProbe:
    """Measures with `n_threads`, again and again over the same memory. Close it."""

    def __init__(self, n_threads: int) -> None:
        library = load_library()
        assert library is not None, "the native library has been checked for"
        self.calls = calls_of(library)
        self.n_threads = n_threads
        self.threads = start_threads(self.calls, n_threads)
        self.memory = self.calls.reserve(READ_BYTES)
        self.calls.first_touch(self.threads, self.memory, READ_BYTES)

    def measure(self) -> Limits:
        """About a tenth of a second."""
        read = max(self.calls.probe_read(self.threads, self.memory, READ_BYTES) for _ in range(3))
        int8, half = (self.calls.probe_multiply(self.threads, kind) for kind in (abi.PROBE_INT8, abi.PROBE_F16))
        return Limits(self.copy_rate() / 1e9, read / 1e9, int8 / 1e9, half / 1e9)

    def copy_rate(self) -> float:
        """Bytes a second moved from one half of the memory to the other, by as many threads."""
        part = READ_BYTES // 2 // self.n_threads

        def copy(index: int) -> None:
            source = self.memory + index * part
            ctypes.memmove(source + READ_BYTES // 2, source, part)

        with ThreadPoolExecutor(self.n_threads) as pool:
            started = time.perf_counter()
            list(pool.map(copy, range(self.n_threads)))
            return part * self.n_threads / (time.perf_counter() - started)

    def close(self) -> None:
        self.calls.release(self.memory, READ_BYTES)
        self.calls.threads_destroy(self.threads)

"""Limits of the processor, measured by numpy: for machines without the native library."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from localrun.backends.limits import Limits

READ_BYTES = 64 << 20  # a thread; more than a cache holds
SIDE = 1024  # of the matrices that are multiplied


class NumpyLimitProbe:
    """Reads with `n_threads`; numpy's own library decides how many multiply."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.pool = ThreadPoolExecutor(n_threads)
        self.blocks = [np.ones(READ_BYTES // 4, np.float32) for _ in range(n_threads)]
        self.matrix = np.ones((SIDE, SIDE), np.float32)

    def measure(self) -> Limits:
        read = self.n_threads * READ_BYTES / _seconds(lambda: list(self.pool.map(np.max, self.blocks)))
        macs = SIDE**3 / _seconds(lambda: self.matrix @ self.matrix)
        return Limits(0.0, read / 1e9, macs / 1e9, macs / 1e9)

    def close(self) -> None:
        self.pool.shutdown()


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return max(time.perf_counter() - started, 1e-9)

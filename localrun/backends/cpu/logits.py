"""Logits of the native library, and its choice of tokens."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from localrun.backends.cpu import abi, abi_step
from localrun.backends.cpu.bindings import CpuCalls
from localrun.base.dataclass import dataclass
from localrun.ops.interface import Logits
from localrun.ops.largest_step import MAX_CANDIDATES
from localrun.ops.sampling import Draw

CANDIDATES = np.dtype(
    [
        ("ids", np.int32, MAX_CANDIDATES),
        ("values", np.float32, MAX_CANDIDATES),
        ("logsumexp", np.float64),
        ("n_candidates", np.int32),
        ("finite", np.int32),
    ]
)


@dataclass(frozen=True, slots=True)
class NativeLogits(Logits):
    """Views of what a step leaves in native memory. Tokens are chosen there, for all rows in one call."""

    calls: CpuCalls
    threads: int
    address: int  # of the rows
    candidates: Any  # abi_step.Candidates [at least L]

    def choose(self, draws: Sequence[Draw]) -> list[int]:
        n_rows, vocab = self.rows.shape
        return self.calls.choose(self.threads, self.address, n_rows, vocab, self.candidates, draws)


class LogitsMemory:
    """Rows [max_rows, vocab] at an address, and room for their candidates."""

    def __init__(self, calls: CpuCalls, threads: int, address: int, max_rows: int, vocab: int) -> None:
        self.calls, self.threads, self.address = calls, threads, address
        self.rows = array_at(address, max_rows, vocab)
        self.candidates = (abi_step.Candidates * max_rows)()
        self.found = np.frombuffer(memoryview(self.candidates).cast("B"), CANDIDATES)
        self.n_candidates = min(MAX_CANDIDATES, vocab)
        self.views: dict[int, NativeLogits] = {}  # by rows: decoding asks for the same ones again

    def logits(self, count: int) -> NativeLogits:
        """Views of the first `count` rows. One that is not finite has no candidates: they read 0."""
        views = self.views.get(count)
        if views is None:
            views = self.views[count] = NativeLogits(
                rows=self.rows[:count],
                top_ids=self.found["ids"][:count, : self.n_candidates],
                top_values=self.found["values"][:count, : self.n_candidates],
                logsumexp=self.found["logsumexp"][:count],
                finite=self.found["finite"][:count],
                calls=self.calls,
                threads=self.threads,
                address=self.address,
                candidates=self.candidates,
            )
        return views


def array_at(address: int, n_rows: int, n_cols: int) -> np.ndarray:
    """A float32 view [n_rows, n_cols] of native memory."""
    memory = (ctypes.c_float * (n_rows * n_cols)).from_address(address)
    return np.ctypeslib.as_array(memory).reshape(n_rows, n_cols)


def view_of(value: abi.Value, n_rows: int) -> np.ndarray:
    """The numbers of the first rows of a buffer, f32 [n_rows, width]."""
    cells = ctypes.cast(value.f32, ctypes.POINTER(ctypes.c_float * (n_rows * value.stride))).contents
    return np.frombuffer(cells, np.float32).reshape(n_rows, value.stride)[:, : value.width]

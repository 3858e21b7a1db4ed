"""Adapters in a linear on every instruction set: right, and to the bit the same however rows and threads share them."""

import ctypes

import numpy as np
import pytest
import torch
from localrun_testing.native_ops import (
    Guarded,
    NativeMatrix,
    NativeValue,
    decoded,
    instruction,
    library,
    linear_op,
    nmse,
    run,
    sample,
)
from torch import Tensor

from localrun.backends.cpu import abi
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.cpu.low_rank import by_groups
from localrun.base.errors import EngineError
from localrun.ops.layouts import RowReader

N_OUT, SCALES = 35, (0.75, -2.0)
SHAPES = ((1, 31), (4, 33), (16, 512), (20, 1185), (37, 640))  # rank, columns: of a span and some, of several groups


class Pair:
    """Random A and B, as the library has them."""

    def __init__(self, rank: int, n_cols: int, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.a, self.b = (torch.randn(shape, generator=draw).half() for shape in ((rank, n_cols), (N_OUT, rank)))
        self.matrix = NativeMatrix(self.a.view(torch.uint8), "F16", n_cols)
        groups = torch.from_numpy(by_groups(self.b.numpy()))
        self.groups = Guarded(2 * groups.numel(), 2)
        self.groups.tensor(torch.float16, groups.numel())[:] = groups.flatten()

    def delta(self, x: Tensor) -> Tensor:
        return x.double() @ self.a.double().T @ self.b.double().T


def adapted(x: Tensor, matrix: NativeMatrix, pairs: list[Pair], threads: int = 1) -> Tensor:
    """A linear with these adapters, the first and the second of a scale of its own."""
    a, out = NativeValue(len(x), x.shape[1], data=x), NativeValue(len(x), N_OUT)
    between = [NativeValue(len(x), len(pair.a)) for pair in pairs]
    made = [
        abi.Adapter(ctypes.pointer(pair.matrix.c), ctypes.pointer(t.c), pair.groups.address, scale)
        for pair, t, scale in zip(pairs, between, SCALES, strict=False)
    ]
    op = linear_op(a.c, [matrix], [out.c])
    op.adapter[0], op.n_adapters[0] = (abi.Adapter * len(made))(*made), len(made)
    run([instruction(op)], len(x), threads)
    assert all(t.data.isfinite().all() for t in between)
    return out.data


@pytest.mark.parametrize(("rank", "n_cols"), SHAPES)
def test_adapters_add_their_products(isa: str, rank: int, n_cols: int) -> None:
    raw = sample("F32", N_OUT, n_cols)
    pairs = [Pair(rank, n_cols, 0), Pair(rank + 1, n_cols, 1)]
    x = torch.randn(61, n_cols, generator=torch.Generator().manual_seed(2))
    together = adapted(x, NativeMatrix(raw, "F32", n_cols), pairs, threads=3)
    added = sum(scale * pair.delta(x) for pair, scale in zip(pairs, SCALES, strict=True))
    assert nmse(together, x.double() @ decoded("F32", raw, n_cols).double().T + added) < 1e-11
    for first, n in ((0, 1), (60, 1), (5, 2), (9, 11), (20, 12), (1, 48)):
        part = adapted(x[first : first + n], NativeMatrix(raw, "F32", n_cols), pairs)
        assert torch.equal(part, together[first : first + n]), (first, n)


def test_the_first_matrices_of_adapters_follow_one_another_as_they_are_read() -> None:
    """So what is prefetched at the end of one is the next; likewise the second ones."""
    layout, ones = CpuLayout(library(), 1), RowReader("F32", 64, 64, lambda first, n: np.ones((n, 256), np.uint8))
    pairs = []
    for _ in range(2):
        layout.pack(ones)
        pairs.append(layout.low_rank(np.ones((16, 64), np.float32), np.ones((64, 16), np.float32), None)[:2])
    for first, second in zip(*pairs, strict=True):
        assert first.planes[0].ctypes.data + first.planes[0].nbytes == second.planes[0].ctypes.data


def test_an_adapter_that_does_not_fit_is_refused() -> None:
    raw, pair = sample("F32", N_OUT, 64), Pair(4, 96, 0)
    with pytest.raises(EngineError):
        adapted(torch.ones(1, 64), NativeMatrix(raw, "F32", 64), [pair])

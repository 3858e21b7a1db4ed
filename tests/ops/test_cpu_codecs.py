"""Attention of the native library over every codec, shape and option: right, and the same bits however it is run."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from localrun_testing.kv_cases import CASES, NMSE, KVCase, nmse, run, sizes

from localrun.ops.cpu import CpuExecutor, CpuLayout
from localrun.ops.cpu_calls import calls_of
from localrun.ops.library import NativeLibrary, load_library

MakeExecutor = Callable[..., CpuExecutor]


@pytest.fixture
def library() -> Iterator[NativeLibrary]:
    """The native library, its instruction set put back afterwards."""
    library = load_library()
    assert library is not None
    before = library.isa
    yield library
    library.use_isa(before)


@pytest.fixture
def executor(library: NativeLibrary) -> Iterator[MakeExecutor]:
    """Makes executors of a case with `threads`; they are closed at the end."""
    made: list[CpuExecutor] = []

    def make(case: KVCase, threads: int = 2) -> CpuExecutor:
        layout, (n_blocks, n_ring) = CpuLayout(calls_of(library), threads), sizes(case)
        made.append(
            CpuExecutor(
                layout, case.forward(layout), [case.layer], case.plan, [n_blocks], [n_ring], case.n_tokens, case.n_tokens
            )
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_a_loop_over_queries(case: KVCase, executor: MakeExecutor) -> None:
    chunks = [1, 62, 2, case.n_tokens - 66, 1]
    out = run(case, executor(case), chunks, seed=random.Random(str(case)).randrange(99), poison=True)
    assert nmse(out[case.telling_rows], case.expected(case.telling_rows)) < NMSE[case.codec]

"""Attention over every codec, shape and option against a loop over queries, on the reference in both modes."""

import random

import pytest
import torch
from localrun_testing.kv_cases import CASES, KVCase, nmse, run, sizes

from localrun.ops.executor import ReferenceExecutor
from localrun.ops.layouts import F32
from localrun.ops.reference import ReferenceOps
from localrun.ops.reference_rows import RowReferenceOps


def executor_for(case: KVCase, ops: type[ReferenceOps] = ReferenceOps) -> ReferenceExecutor:
    (n_blocks, n_ring), layers = sizes(case), [case.layer]
    return ReferenceExecutor(case.forward(F32), layers, case.plan, [n_blocks], [n_ring], torch.device("cpu"), ops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_is_a_loop_over_queries(case: KVCase) -> None:
    chunks = [1, 62, 2, case.n_tokens - 66, 1]
    out = run(case, executor_for(case), chunks, seed=random.Random(str(case)).randrange(99), poison=True)
    assert nmse(out[case.telling_rows], case.expected(case.telling_rows)) < 1e-11

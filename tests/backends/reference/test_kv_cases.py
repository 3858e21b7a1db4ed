"""Attention over every codec, shape and option against a loop over queries."""

import pytest
from localrun_testing.kv_cases import CASES, KVCase, nmse, reference_for, run


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_is_a_loop_over_queries(case: KVCase) -> None:
    """In chunks that end beside the edges of blocks, with NaN wherever nothing of the sequence is stored."""
    out = run(case, reference_for(case), [1, 62, 2, case.n_tokens - 66, 1], seed=case.n_tokens, poison=True)
    assert nmse(out[case.telling_rows], case.expected(case.telling_rows)) < 1e-11

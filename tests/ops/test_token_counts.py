"""Counts of tokens against a Counter."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from localrun.ops.token_counts import TokenCounts

IDS = st.lists(st.integers(0, 9) | st.integers(0, 2**31 - 1))


@given(IDS, IDS)
def test_counts_are_those_of_a_counter(at_first: list[int], later: list[int]) -> None:
    counts = TokenCounts(at_first)
    for token_id in later:
        counts.add(token_id)
    assert dict(TokenCounts(at_first).plus(later)) == dict(counts)
    before = TokenCounts(at_first)
    before.plus(later)
    assert dict(before) == Counter(at_first), "a copy was counted in, not this"
    expected = Counter(at_first + later)
    assert dict(counts) == expected
    assert counts.ids.tolist() == list(expected)
    assert counts.counts.tolist() == list(expected.values())
    assert (len(counts), bool(counts)) == (len(expected), bool(expected))
    assert all(number not in counts for number in (-1, 2**31) if number not in expected)

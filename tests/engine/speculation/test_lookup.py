"""The lookup drafter against a search through the whole text."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from localrun.cache.branches import BREAK
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.lookup import GRAM, LONGEST, Lookup

TEXTS = st.lists(st.integers(0, 3), max_size=120)


def longest_match(ids: Sequence[int]) -> int:
    """Tokens of the longest end of a text that stands in it before, by trying all."""
    ends = range(1, len(ids))
    return max((n for end in ends for n in range(end + 1) if ids[end - n : end] == ids[len(ids) - n :][:n]), default=0)


@given(TEXTS, st.integers(1, 12))
def test_a_draft_is_what_came_after_the_same_tokens(ids: list[int], most: int) -> None:
    tokens, length, _ = Lookup().draft(ids, most)
    if not tokens:
        assert longest_match(ids) < GRAM
        return
    assert GRAM <= length <= min(LONGEST, longest_match(ids))
    assert len(tokens) == most
    gone_on = [*ids, *tokens]
    starts = [end for end in range(length, len(ids)) if ids[end - length : end] == ids[len(ids) - length :]]
    assert any(gone_on[start : start + most] == list(tokens) for start in starts)


@given(TEXTS, st.lists(st.integers(1, 50), max_size=6))
def test_a_text_that_grew_is_looked_up_as_one_read_at_once(ids: list[int], steps: list[int]) -> None:
    """However it came, in single tokens or in prompts."""
    grown, n = Lookup(), 0
    for step in steps:
        n = min(len(ids), n + step)
        assert grown.draft(ids[:n], 5) == Lookup().draft(ids[:n], 5)


@given(st.lists(st.integers(0, 200_000), min_size=40, max_size=80, unique=True))
def test_slots_of_large_ids_are_the_same_one_by_one(ids: list[int]) -> None:
    text, single = ids + ids[:20], Lookup()
    for n in range(1, len(text)):
        single.draft(text[:n], 1)
    assert single.draft(text, 8) == Lookup().draft(text, 8) == DraftedTokens(tuple(text[20:28]), 20)


def test_what_repeats_goes_on_into_itself() -> None:
    assert Lookup().draft([9, *[1, 2] * 4], 7).tokens == (1, 2, 1, 2, 1, 2, 1)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=40), max_size=4), TEXTS, st.integers(1, 12))
def test_an_earlier_text_is_looked_up_like_the_own_one_as_far_as_it_goes(
    earlier: list[list[int]], ids: list[int], most: int
) -> None:
    before = [token for one in earlier for token in (*one, BREAK)]
    drafted = Lookup(before).draft(ids, most)
    assert drafted == Lookup().draft([*before, *ids], most)
    assert BREAK not in drafted.tokens


def test_another_answer_to_the_same_question_goes_on_as_the_first_one_did() -> None:
    question, answer = [1, 2, 3, 4, 5], [6, 7, 8, 9]
    assert Lookup([*question, *answer, BREAK]).draft(question, 8).tokens == tuple(answer)

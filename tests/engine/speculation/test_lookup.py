"""The lookup drafter against a search through the whole text."""

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.small_model import greedy

from localrun.cache.branches import BREAK
from localrun.cache.prefix import PrefixTree
from localrun.engine.generation import GenerationState
from localrun.engine.speculation import lookup
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.lookup import GRAM, LONGEST, MOST_CHANGED, MOST_KEPT, QUOTED, Lookup, Lookups

TEXTS = st.lists(st.integers(0, 3), max_size=120)


def longest_match(ids: Sequence[int]) -> int:
    """Tokens of the longest end of a text that stands in it before, by trying all."""
    ends = range(1, len(ids))
    return max((n for end in ends for n in range(end + 1) if ids[end - n : end] == ids[len(ids) - n :][:n]), default=0)


@given(TEXTS, st.integers(1, 12))
def test_a_draft_is_what_came_after_the_same_tokens(ids: list[int], most: int) -> None:
    tokens, length, *_ = Lookup().draft(ids, most)
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
        draft = grown.draft(ids[:n], 5)
        assert (0 if draft.after_edit else draft.evidence) == Lookup().draft(ids[:n], 5).evidence


@given(st.lists(st.integers(0, 1 << 20), min_size=40, max_size=80, unique=True))
def test_large_ids_are_found_one_by_one_as_at_once(ids: list[int]) -> None:
    text, single = ids + ids[:20], Lookup()
    for n in range(1, len(text)):
        single.draft(text[:n], 1)
    found = DraftedTokens(tuple(text[20:28]), 20, distance=len(ids))
    assert single.draft(text, 8) == Lookup().draft(text, 8) == found


def test_prompts_that_come_in_parts_are_looked_up_across_them() -> None:
    known, found = [*range(60)], Lookup()
    assert found.read(known, 60)
    assert found.draft([*known, *known[:40]], 8) == DraftedTokens(tuple(known[40:48]), LONGEST, distance=60)


def test_what_repeats_goes_on_into_itself() -> None:
    assert Lookup().draft([9, *[1, 2] * 4], 7).tokens == (1, 2, 1, 2, 1, 2, 1)


SOURCE = [*range(100, 160)]


def quoting(*answer: int, source: Sequence[int] = SOURCE, most: int = 4) -> DraftedTokens:
    """The draft after an answer to a text, which is looked up token by token."""
    found = Lookup()
    for n in range(len(answer)):
        found.draft([*source, *answer[:n]], most)
    return found.draft([*source, *answer], most)


@pytest.mark.parametrize(
    ("changed", "goes_on", "resumed"),
    [((7,), 111, False), ((7, 111), 112, True), ((7, 8, 112), 113, True), ((7, 110), 111, True), ((111,), 112, True)],
    ids=["another", "after another", "after two others", "one more", "one less"],
)
def test_a_quotation_goes_on_after_an_edit(changed: tuple[int, ...], goes_on: int, resumed: bool) -> None:
    draft = quoting(*SOURCE[:10], *changed)
    distance = len(SOURCE) + 10 + len(changed) - SOURCE.index(goes_on)
    goes_on_with = tuple(range(goes_on, goes_on + 4))
    assert draft == DraftedTokens(goes_on_with, 10, after_edit=True, resumed=resumed, distance=distance)


def test_after_more_than_one_token_that_differs_a_quotation_goes_on_with_one_of_its_own() -> None:
    assert not quoting(*SOURCE[:10], 7, 8).tokens
    assert quoting(*SOURCE[:10], 7, 8, 112).tokens


def test_a_quotation_ends_where_too_much_is_changed() -> None:
    other = range(MOST_CHANGED)
    last = SOURCE[10 + MOST_CHANGED - 1]
    assert quoting(*SOURCE[:10], *other[:-1], last, most=1).tokens
    assert not quoting(*SOURCE[:10], *other, last + 1, most=1).tokens


def test_a_few_tokens_alike_are_no_quotation() -> None:
    assert quoting(*SOURCE[: QUOTED - 1]).tokens
    assert not quoting(*SOURCE[: QUOTED - 1], 7).tokens


def test_of_places_alike_that_of_the_quotation_counts() -> None:
    """The last one is the answer's own, which the text before it does not go on like."""
    items = [1, 2, 3, 10, 1, 2, 3, 11, 1, 2, 3, 12]
    source = [*SOURCE[:8], *items]
    assert quoting(*source[:-1], source=source, most=1).tokens == (12,)
    edited = [*SOURCE[:8], 1, 2, 3, 77, 1, 2, 3]
    assert quoting(*edited, source=source, most=1).tokens == (11,)


@pytest.mark.parametrize(("third", "agreed"), [(6, 4), (7, 2)])
def test_tokens_that_all_places_go_on_with_are_told(third: int, agreed: int) -> None:
    lines = [[1, 2, 3, 4, 5, line, 70 + line] for line in (6, 6, third)]
    draft = Lookup().draft([*lines[0], *lines[1], *lines[2], 1, 2, 3], 4)
    assert draft.tokens == (4, 5, third, 70 + third)
    assert draft.agreed == agreed
    assert draft.is_fork
    assert Lookup().draft([*lines[0], 1, 2, 3], 4) == DraftedTokens((4, 5, 6, 76), 3, distance=7)


def test_a_quotation_is_of_one_text() -> None:
    found = Lookup()
    found.draft([*SOURCE, *SOURCE[:10]], 1)
    assert found.draft([*SOURCE, *SOURCE[:10], 7], 1).after_edit
    found.begin([8, 9])
    assert not found.draft([8, 9], 1).tokens


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


@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(0, 100), st.integers(1, 12))
def test_the_next_text_of_a_chat_is_looked_up_in_all_before_it(texts: list[list[int]], kept: int, most: int) -> None:
    """Some begin like the one before, as an edited or regenerated answer does; every earlier place is compared."""
    found, earlier, before = Lookup(), list[list[int]](), list[int]()
    with patch.object(lookup, "PLACES", 1000):
        for one in texts:
            text = before[:kept] + one
            if text[: len(before)] != before:  # else it is the same text, which has grown
                earlier.append(before)
            seen = [token for other in earlier for token in (*other, BREAK)]
            found.begin(text)
            tokens, length, _, after_edit, *_ = found.draft(text, most)
            alike = longest_match([*seen, *text])
            assert (0 if after_edit else length) == (min(LONGEST, alike) if alike >= GRAM else 0)
            like = tokens if after_edit else [*text, *tokens][-length - len(tokens) :]
            assert tokens == () or holds([*seen, *text, *tokens], like)
            before = text


def holds(ids: Sequence[int], part: Sequence[int]) -> bool:
    """Whether tokens stand somewhere before the end of others, which may go on into them."""
    return any(list(ids[start : start + len(part)]) == list(part) for start in range(len(ids) - len(part)))


@given(st.lists(TEXTS, min_size=2, max_size=6), st.integers(1, 12))
def test_of_too_many_earlier_texts_the_oldest_are_left_out(texts: list[list[int]], most: int) -> None:
    """What is drafted stands in one of them; the own text is looked up as ever."""
    found, seen = Lookup(), list[int]()
    with patch.object(lookup, "MOST_EARLIER", 40):
        for text in texts:
            found.begin(text)
            tokens, length, _, after_edit, *_ = found.draft(text, most)
            like = tokens if after_edit else [*text, *tokens][-length - len(tokens) :]
            assert tokens == () or holds([*seen, *text, *tokens], like)
            assert length >= Lookup().draft(text, most).evidence
            seen += [*text, BREAK]
            assert len(found._ids) <= 40 + len(text) + max(map(len, texts)) + 1


@given(TEXTS, st.integers(1, 40))
def test_a_text_is_noted_bit_by_bit_and_drafted_for_once_all_of_it_is(ids: list[int], most: int) -> None:
    bit_by_bit, n_looks = Lookup(), 0
    with patch.object(lookup, "MOST_READ", most):
        while not (found := bit_by_bit.draft(ids, 5)).tokens and n_looks * most < len(ids):
            n_looks += 1
    assert found == Lookup().draft(ids, 5)
    assert n_looks == max(0, -(-len(ids) // most) - 1) or not found.tokens


def in_chat(chat: str) -> GenerationState:
    return GenerationState(replace(greedy([1, 2, 3]), chat=chat))


def test_the_next_answer_in_a_chat_goes_on_with_its_lookup() -> None:
    begin = Lookups(PrefixTree([], [], 64))
    first = begin(in_chat("a"))
    assert begin(in_chat("a")) is not first  # which is not over yet
    last = begin(in_chat("a"))
    last.close()
    assert begin(in_chat("b")) is not last
    assert begin(in_chat("a")) is last


def test_the_lookups_of_a_few_chats_are_kept_and_none_of_answers_without_one() -> None:
    begin = Lookups(PrefixTree([], [], 64))
    kept = [begin(in_chat(f"chat {n}")) for n in range(MOST_KEPT + 1)]
    for one in (*kept, begin(in_chat(""))):
        one.close()
    assert begin(in_chat("chat 1")) is kept[1]
    assert begin(in_chat("chat 0")) is not kept[0]
    assert begin(in_chat("")) is not begin(in_chat(""))
    alone = Lookups(PrefixTree([], [], 64), are_kept=False)
    one = alone(in_chat("a"))
    one.close()
    assert alone(in_chat("a")) is not one

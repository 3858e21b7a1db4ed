"""Other branches of a chat, against a search through the texts that were computed."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.integer_model import FULL, IntegerModel, serve, text

from localrun.cache.branches import BREAK, other_branches, token_of
from localrun.cache.bulk import MARK
from localrun.cache.node import common_prefix

CHATS = ("mine", "yours", "")
RUNS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 90)), min_size=1, max_size=4)


def store_of(texts: Sequence[tuple[str, Sequence[int]]]) -> IntegerModel:
    model = IntegerModel([FULL], ["f16"], 400, 400)
    for chat, ids in texts:
        serve(model, list(ids), chat=chat)
    return model


def ids_of(runs: Sequence[tuple[int, int]]) -> list[int]:
    return [token for token, n in runs for _ in range(n)]


def stands_in(part: Sequence[int], whole: Sequence[int]) -> bool:
    return any(list(whole[n : n + len(part)]) == list(part) for n in range(len(whole) - len(part) + 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(CHATS), RUNS), min_size=1, max_size=8), RUNS)
def test_branches_are_the_ends_of_the_texts_of_the_same_chat(
    texts: list[tuple[str, list[tuple[int, int]]]], runs: list[tuple[int, int]]
) -> None:
    model, ids = store_of([(chat, ids_of(one)) for chat, one in texts]), ids_of(runs)
    mine = [ids_of(one) for chat, one in texts if chat == "mine"]
    found = other_branches(model.store.tree, ids, "mine", 1 << 20)
    pieces: list[list[int]] = []
    for token in found:
        if token == BREAK:
            pieces.append([])
        else:
            pieces[-1].append(token)
    size = model.store.block_tokens
    for piece in pieces:
        assert any(stands_in(piece, ids_of(one)) for _, one in texts)
        assert any(stands_in(piece[:-size], one) for one in mine)  # a block that two chats share is of the longer text
    for one in mine:  # its whole blocks after the last that it shares with any text are in a piece
        others = [ids, *(other for other in mine if other != one)]
        fork = max(common_prefix(one, other) // size * size for other in others)
        assert any(stands_in(one[fork : len(one) // size * size], piece) for piece in [[], *pieces])


def test_the_branches_that_fork_last_are_the_last_to_be_left_out() -> None:
    start, question = text(128), text(64, 1)
    early, late = [*start, *text(80, 2)], [*start, *question, *text(80, 3)]
    model = store_of([("a", early), ("a", late)])
    ids = [*start, *question, *text(10, 4)]
    found = other_branches(model.store.tree, ids, "a", 1000)
    assert found == [BREAK, *start[-32:], *early[128:], BREAK, *ids[160:192], *late[192:]]
    assert other_branches(model.store.tree, ids, "a", 60) == [BREAK, *ids[160:192], *late[192:252]]


def test_another_chat_and_a_request_without_one_see_nothing() -> None:
    start = text(128)
    model = store_of([("a", [*start, *text(80, 2)])])
    assert other_branches(model.store.tree, start, "b", 1000) == []
    assert other_branches(model.store.tree, start, "", 1000) == []


def test_a_piece_of_an_image_is_no_token_and_a_mark_is_taken_off() -> None:
    assert token_of(7) == token_of(7 | MARK) == 7
    assert token_of((1 << 127) + 7) == token_of(-5) == BREAK

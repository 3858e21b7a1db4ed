"""The tree of a conversation against a list of parents, which is all it is."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localrun.base.content import as_content
from localrun.chat.tree import ChatTree, Message


def message(number: int, parent: int | None) -> Message:
    return Message(str(number), None if parent is None else str(parent), "user", as_content(f"text {number}"))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1 << 16)), max_size=40))
def test_a_tree_is_what_was_added_and_selected(steps: list[tuple[bool, int]]) -> None:
    """Add to a random parent or select a random message; path, siblings and head are those of the parents."""
    tree, parents = ChatTree(), dict[str, str | None]()
    head: str | None = None
    for adds, number in steps:
        names = [None, *parents]
        chosen = names[number % len(names)]
        if adds:
            head = str(len(parents))
            parents[head] = chosen
            tree.add(Message(head, chosen, "user", ()))
        else:
            head = chosen
            tree.select(chosen)
        path = []
        at = head
        while at is not None:
            path.append(at)
            at = parents[at]
        assert tree.head == head
        assert [m.id for m in tree.path(tree.head)] == path[::-1]
        for name in parents:
            assert tree.siblings(name) == [other for other in parents if parents[other] == parents[name]]
            below = tree.leaf_below(name)
            assert not tree.children(below)
            assert name in [m.id for m in tree.path(below)]
        if head is not None:
            assert head in [m.id for m in tree.path(tree.leaf_below(path[-1]))], "the branch that was shown last"


def test_walking_to_a_branch_and_back_ends_where_one_was() -> None:
    tree = ChatTree()
    for number, parent in enumerate([None, 0, 1, 2, 1, 4]):
        tree.add(message(number, parent))
    tree.select(tree.leaf_below("2"))
    assert tree.head == "3"
    tree.select(tree.leaf_below("4"))
    assert tree.head == "5"
    assert tree.leaf_below("0") == "5"


def test_a_placeholder_is_replaced_by_its_message() -> None:
    tree = ChatTree()
    tree.add(Message("a", None, "user", as_content("?"), lost=True))
    tree.add(message(1, None))
    tree.add(Message("a", None, "user", as_content("here it is")))
    assert tree["a"].text == "here it is"
    assert tree.head == "a"
    tree.add(Message("a", None, "user", as_content("a second one")))
    assert tree["a"].text == "here it is"
    assert len(tree) == 2
    assert "a" in tree
    assert "b" not in tree


@st.composite
def told(draw: st.DrawFn) -> tuple[list[int | None], list[int], set[int]]:
    """The parent of each message, the order in which blocks of them stand in the file, and which are damaged there."""
    n = draw(st.integers(1, 12))
    parents = [draw(st.sampled_from([None, *range(number)])) for number in range(n)]
    cuts = sorted(draw(st.sets(st.integers(1, n), max_size=4)) | {0, n})
    blocks = [list(range(start, end)) for start, end in pairwise(cuts)]
    order = [number for block in draw(st.permutations(blocks)) for number in block]
    return parents, order, draw(st.sets(st.sampled_from(order), max_size=2))


@given(told())
@example(([None, 0, 1, 2, 3, 4], [0, 3, 4, 1, 2, 5], set()))
@example(([None, 0, 1, 2, 3, 4], [5, 4, 3, 2, 1, 0], set()))
def test_intact_messages_are_shown_wherever_their_records_stand(
    file: tuple[list[int | None], list[int], set[int]],
) -> None:
    parents, order, damaged = file
    tree = ChatTree()
    for number in order:
        parent = parents[number]
        if number not in damaged:
            above = None if parent is None else parents[parent]
            tree.add_reply(message(number, parent), None if above is None else str(above))
    intact = set(order) - damaged
    for number in intact:
        one = tree[str(number)]
        assert one == message(number, parents[number])
        assert tree.path(one.id)[-1] == one
        assert tree.siblings(one.id).count(one.id) == 1
        assert one.id in [other.id for other in tree.path(tree.leaf_below(one.id))]
    assert {int(one.id) for one in tree.messages() if one.lost} <= damaged
    assert len(list(walked(tree))) == len(tree), "each is reached once from the beginning"
    assert not tree.children(tree.head) if tree.head else not intact, "the branch that is shown ends with its last"


class Counted(dict[str, Message]):
    """Messages by id, and how often one was looked for."""

    looks = 0

    def __getitem__(self, key: str) -> Message:
        self.looks += 1
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.looks += 1
        return super().get(key, default)


N = 300
LONG: dict[str, list[tuple[int, int | None]]] = {
    "two branches, by turns": [(number, number - 2 if number > 1 else None) for number in range(N)],
    "backwards": [(number, number - 1 if number else None) for number in reversed(range(N))],
    "each the first known of its branch": [(number, number + 1) for number in range(0, 2 * N, 2)],
}


@pytest.mark.parametrize("records", LONG.values(), ids=LONG)
def test_a_long_chat_is_not_walked_through_for_each_message(records: list[tuple[int, int | None]]) -> None:
    tree = ChatTree()
    tree._messages = looked_at = Counted()
    for number, parent in records:
        tree.add_reply(message(number, parent), "unknown")
    for number, _ in records:
        tree.select(str(number))
    assert tree.leaf_below(str(records[0][0]))
    assert looked_at.looks < 12 * len(records)


def walked(tree: ChatTree, above: str | None = None) -> Iterator[str]:
    for child in tree.children(above):
        yield child
        yield from walked(tree, child)

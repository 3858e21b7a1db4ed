"""The tree of a conversation against a list of parents, which is all it is."""

from hypothesis import given
from hypothesis import strategies as st

from localrun.chat.tree import ChatTree, Message


def message(number: int, parent: int | None) -> Message:
    return Message(str(number), None if parent is None else str(parent), "user", f"text {number}")


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
            tree.add(Message(head, chosen, "user", ""))
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


def test_what_stood_in_for_a_lost_message_gives_way_to_it() -> None:
    tree = ChatTree()
    tree.add(Message("a", None, "user", "?", lost=True))
    tree.add(message(1, None))
    tree.add(Message("a", None, "user", "here it is"))
    assert tree["a"].text == "here it is"
    assert tree.head == "a"
    tree.add(Message("a", None, "user", "a second one"))
    assert tree["a"].text == "here it is"
    assert len(tree) == 2
    assert "a" in tree
    assert "b" not in tree

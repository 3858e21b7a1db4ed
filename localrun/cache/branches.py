"""Other branches of a chat in the prefix tree: answers before a regeneration, texts before an edit. Ints only."""

from collections.abc import Iterator, Sequence

from localrun.cache.bulk import MARK
from localrun.cache.node import Node
from localrun.cache.prefix import PrefixTree

BREAK = MARK - 1  # between two branches, and for what is no token: no id of a vocabulary
BEFORE = 32  # tokens before a fork that go with its branches


def other_branches(tree: PrefixTree, keys: Sequence[int], chat: str, most: int) -> list[int]:
    """Token ids of the branches of a chat that are in the tree beside the text with these keys, each after a BREAK.

    At most about `most` tokens; the branches that fork last come last, and are the last to be left out. The last block
    of a branch may end with tokens of another chat, whose text begins like this one's.
    """
    path = [tree.root, *tree.match(keys).path]
    branches: list[list[int]] = []
    for depth, (node, onwards) in reversed([*enumerate(zip(path, [*path[1:], None], strict=True))]):
        fork = depth * tree.block_tokens
        before = [token_of(key) for key in keys[max(0, fork - BEFORE) : fork]]
        for child in node.children.values():
            if child is onwards or chat not in child.chats:
                continue
            for branch in texts_below(child, chat):
                if most <= 0:
                    return [token for one in reversed(branches) for token in one]
                branches.append([BREAK, *before, *branch[:most]])
                most -= len(branches[-1])
    return [token for one in reversed(branches) for token in one]


def texts_below(node: Node, chat: str) -> Iterator[list[int]]:
    """Token ids of every branch of a chat from this node on; what several share is in the first of them alone."""
    text: list[int] = []
    while True:
        text += map(token_of, node.ids)
        children = [child for child in node.children.values() if chat in child.chats]
        if not children:
            break
        node, others = children[-1], children[:-1]
        for child in others:
            yield from texts_below(child, chat)
    yield text


def token_of(key: int) -> int:
    """The token of a key; BREAK for the key of a piece of an image."""
    token = key & ~MARK
    return token if 0 <= token < BREAK else BREAK

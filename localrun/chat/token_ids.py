"""Token ids of a branch, as the engine had them: each answer keeps those that the answers before it do not have."""

from collections.abc import Sequence

from localrun.chat.tree import Message


def token_ids(path: Sequence[Message]) -> tuple[tuple[int, ...], str]:
    """Ids up to the last answer of a branch, none where one answer's are not known; and the id of the message that
    its prompt began with, where turns before it were dropped."""
    known: list[int] = []
    begins = ""
    for message in path:
        if message.role == "assistant":
            whole = message.kept <= len(known)
            known[message.kept :] = message.ids
            begins = message.stats.get("horizon") or ""
            if not whole or not message.ids:
                known.clear()
    return tuple(known), begins


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common beginning."""
    if b[: len(a)] == a:  # as nearly always, and quickly told
        return len(a)
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

"""Merges of a byte-pair vocabulary: two tokens that give a third."""

from collections.abc import Container, Sequence
from operator import add, itemgetter
from typing import Any


def first_bad_merge(pairs: Sequence[Sequence[Any]], vocab: Container[str], prefix: str = "") -> int | None:
    """The number of the first entry that is no merge of this vocabulary. `prefix` marks tokens inside of a word.

    The library must not see such an entry: it panics. There are hundreds of thousands, so good ones pass in bulk.
    """

    def is_bad(pair: Sequence[Any]) -> bool:
        if len(pair) != 2 or not all(type(part) is str for part in pair):
            return True
        left, right = pair
        return left not in vocab or right not in vocab or left + right.removeprefix(prefix) not in vocab

    if set(map(len, pairs)) <= {2} and not prefix:
        lefts, rights = list(map(itemgetter(0), pairs)), list(map(itemgetter(1), pairs))
        if set(map(type, lefts)) | set(map(type, rights)) <= {str}:
            known = vocab.__contains__
            if all(map(known, lefts)) and all(map(known, rights)) and all(map(known, map(add, lefts, rights))):
                return None
    return next((number for number, pair in enumerate(pairs) if is_bad(pair)), None)

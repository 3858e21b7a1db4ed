"""Merges of a byte-pair vocabulary: two tokens that become a third."""

from collections.abc import Container, Sequence
from operator import add, itemgetter
from typing import Any


def first_bad_merge(pairs: Sequence[Sequence[Any]], vocab: Container[str], prefix: str = "") -> int | None:
    """Index of the first invalid merge of this vocabulary. `prefix` marks tokens inside a word.

    The tokenizers library panics on such an entry. There are hundreds of thousands of merges, so good ones are checked
    in bulk.
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

"""Tokens of a prompt that are computed in bulk, and their keys in the cache. Ints only.

Some backends multiply many rows with other kernels than few. They compute whole spans of a prompt with those, and the
rest token by token, as in decoding. The two round differently, so the cache names tokens by keys: the token id, with a
mark where it was computed in bulk. Which tokens are in bulk follows from the length of the prompt alone.
"""

from collections.abc import Sequence

MARK = 1 << 31  # of a key; ids are below it


def bulk_tokens(n_prompt: int, span: int) -> int:
    """Number of prompt tokens computed by the bulk kernels: whole spans only, never the last token.

    `span`: tokens of a span; 0 where one arithmetic serves all.
    """
    return (n_prompt - 1) // span * span if span else 0


def keys_of(prompt: list[int], span: int) -> list[int]:
    """Keys of the tokens of a prompt in the cache: the same list where none is computed in bulk."""
    n = bulk_tokens(len(prompt), span)
    return [*(token | MARK for token in prompt[:n]), *prompt[n:]] if n else prompt


def otherwise(keys: Sequence[int]) -> tuple[int, ...]:
    """Keys of the same tokens with the mark inverted."""
    return tuple(key ^ MARK for key in keys)

"""Which tokens of a prompt are read in bulk, and how the cache tells them from others. Ints only.

Where a backend multiplies many rows by other operations than few, it reads whole spans of a prompt by those, and all
else token by token, as it answers. The two round differently. So what the cache holds is named by keys: the id of a
token, with a mark where it was read in bulk. Which tokens are follows from the length of the prompt alone.
"""

from collections.abc import Sequence

MARK = 1 << 31  # of a key; ids are below it


def bulk_tokens(n_prompt: int, span: int) -> int:
    """Number of prompt tokens computed by the bulk kernels: whole spans only, never the last token. `span`: tokens of a
    span; 0 where there is one arithmetic for all."""
    return (n_prompt - 1) // span * span if span else 0


def keys_of(prompt: list[int], span: int) -> list[int]:
    """Names of the tokens of a prompt in the cache: the same list where nothing of it is read in bulk."""
    n = bulk_tokens(len(prompt), span)
    return [*(token | MARK for token in prompt[:n]), *prompt[n:]] if n else prompt


def otherwise(keys: Sequence[int]) -> tuple[int, ...]:
    """The keys of the same tokens where each was read the other way."""
    return tuple(key ^ MARK for key in keys)

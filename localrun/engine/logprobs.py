"""Logprobs of tokens, from unmodified rows of logits. Token ids only, no text."""

from collections.abc import Iterable

from localrun.base.events import TokenLogprob, TopLogprob
from localrun.ops.interface import Logits


def token_logprob(logits: Logits, row: int, token_id: int, n_top: int) -> TokenLogprob:
    """Logprob of a token after a row, and of the `n_top` likeliest in its place."""
    best = logits.top_ids[row, :n_top].tolist()
    top = tuple(TopLogprob(other, logits.logprob(row, other)) for other in best)
    return TokenLogprob(token_id, logits.logprob(row, token_id), top)


def token_logprobs(
    logits: Logits, rows: Iterable[int], token_ids: Iterable[int], n_top: int
) -> tuple[TokenLogprob, ...]:
    """The same of several rows and the token that comes after each."""
    return tuple(token_logprob(logits, row, token_id, n_top) for row, token_id in zip(rows, token_ids, strict=False))

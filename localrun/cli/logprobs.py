"""Output of `run --logprobs`: the probability of each token of an answer, and of the likeliest in its place."""

import math

from localrun.base.events import TokenLogprob, TopLogprob
from localrun.base.request import Json
from localrun.base.units import percent
from localrun.chat.token_odds import shown_token
from localrun.cli.console import note

_WIDTH = 18  # of a token, in characters


def logprob_fields(token: TokenLogprob) -> Json:
    """A token with its likeliest alternatives, for JSON."""
    return _fields(token) | {"top": [_fields(other) for other in token.top]}


def tell_logprobs(tokens: list[TokenLogprob]) -> None:
    """Write a line for each token to stderr, the likeliest alternatives last."""
    for token in tokens:
        chance = "?" if token.logprob is None else percent(math.exp(token.logprob), 1)
        others = [one for one in token.top if (one.token_id, one.piece) != (token.token_id, token.piece)]
        told = ", ".join(f"{shown_token(one.piece)} {percent(math.exp(one.logprob), 1)}" for one in others)
        note(f"{chance:>8}  {shown_token(token.piece):<{_WIDTH}}  {told}".rstrip())


def _fields(token: TokenLogprob | TopLogprob) -> Json:
    """`token` is text as far as its bytes are; `id` is null where a server does not tell it."""
    known = token.token_id if token.token_id >= 0 else None
    text = token.piece.decode("utf-8", "backslashreplace")
    return {"token": text, "id": known, "logprob": token.logprob, "bytes": list(token.piece)}

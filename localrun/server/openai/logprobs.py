"""Logprobs in the two forms of OpenAI's protocols, one of which Ollama has, too."""

import codecs
from collections.abc import Sequence

from localrun.base.check import MAX_LOGPROBS
from localrun.base.events import TokenLogprob, TopLogprob
from localrun.base.request import Json
from localrun.server.request.json_body import Body


class TextOffsets:
    """Places of tokens in a text, in characters. One that ends within a character begins where that does.

    `start` is below 0 where the first tokens, such as BOS, are no part of the text: they begin at 0.
    """

    def __init__(self, start: int) -> None:
        self._at = start
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def next(self, piece: bytes) -> int:
        """Where the next token, of these bytes, begins."""
        begin, self._at = self._at, self._at + len(self._decoder.decode(piece))
        return max(0, begin)


def wanted_logprobs(body: Body) -> int | None:
    """Number of likeliest tokens that a chat wants at each position; None without logprobs."""
    if body.flag("logprobs"):
        return body.whole("top_logprobs", 0, 0, MAX_LOGPROBS)
    if body.whole("top_logprobs", 0, 0, MAX_LOGPROBS):
        raise body.wrong("top_logprobs", "logprobs has to be true for it")
    return None


def chat_logprobs(tokens: Sequence[TokenLogprob]) -> Json:
    """The logprobs of a chat choice."""
    return {"content": [with_others(token) for token in tokens], "refusal": None}


def with_others(token: TokenLogprob) -> Json:
    """A token and the likeliest ones in its place."""
    return _entry(token) | {"top_logprobs": [_entry(other) for other in token.top]}


def completion_logprobs(tokens: Sequence[TokenLogprob], offsets: TextOffsets) -> Json:
    """The logprobs of a completion choice; `top_logprobs` include the token itself."""
    return {
        "tokens": [piece_text(token.piece) for token in tokens],
        "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": [_top(token) for token in tokens],
        "text_offset": [offsets.next(token.piece) for token in tokens],
    }


def piece_text(piece: bytes) -> str:
    """A token as text; bytes that are not valid text are spelled out."""
    return piece.decode(errors="backslashreplace")


def _entry(token: TokenLogprob | TopLogprob) -> Json:
    return {"token": piece_text(token.piece), "logprob": token.logprob, "bytes": list(token.piece)}


def _top(token: TokenLogprob) -> dict[str, float] | None:
    """Text to logprob, best first. Of tokens with the same text the best counts."""
    if token.logprob is None:
        return None
    top: dict[str, float] = {}
    for other in token.top:
        top.setdefault(piece_text(other.piece), other.logprob)
    top.setdefault(piece_text(token.piece), token.logprob)
    return top

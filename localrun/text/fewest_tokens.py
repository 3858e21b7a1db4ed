"""Lower bound on the tokens of a text without encoding it, to refuse what cannot fit a context.

A token is a piece of the text, so no token is longer than the longest piece of the vocabulary whose pairs of
neighbouring bytes all occur in the text.
"""

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from localrun.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy.typing as npt

_SURELY_LONG = 32  # bytes for each token that there is room for; of a shorter text it is not worth the trouble
_CHUNK_BYTES = 1 << 20


def fewest_tokens(tokenizer: Tokenizer, text: str, most: int) -> int:
    """A lower bound on the tokens of `text`; 0 where it may have fewer than `most`, or the bound is unknown."""
    if len(text) * 4 < _SURELY_LONG * most or not _keeps_bytes(tokenizer):
        return 0
    data = unicodedata.normalize("NFC", text).encode(errors="replace")
    kept = b"".join(data.split()) if tokenizer.swallows_space else data
    if len(kept) < _SURELY_LONG * most:
        return 0
    fewest = -(-len(kept) // _longest_piece(tokenizer, data))
    return fewest if fewest >= most else 0


def _longest_piece(tokenizer: Tokenizer, data: bytes) -> int:
    """Bytes of the longest token that may be in a text; one more for a space that encoding puts before it."""
    pairs = np.zeros(1 << 16, np.bool_)
    for start in range(0, len(data), _CHUNK_BYTES):
        pairs[_pairs(data[start : start + _CHUNK_BYTES + 1])] = True
    pieces = _longest_first(tokenizer)
    return next((len(piece) for piece in pieces if pairs[_pairs(piece.removeprefix(b" "))].all()), 1)


def _pairs(data: bytes) -> "npt.NDArray[np.uint16]":
    """Each pair of neighbouring bytes as one number."""
    codes = np.frombuffer(data, np.uint8).astype(np.uint16)
    return (codes[:-1] << np.uint16(8)) | codes[1:]


@lru_cache(maxsize=2)
def _longest_first(tokenizer: Tokenizer) -> list[bytes]:
    return sorted({tokenizer.piece(i) for i in range(tokenizer.vocab_size)}, key=len, reverse=True)


@lru_cache(maxsize=2)
def _keeps_bytes(tokenizer: Tokenizer) -> bool:
    """Whether every byte of a text is in some token.

    A vocabulary without all bytes drops unknown text or makes one token of it, and some normalizers shorten a text.
    """
    if tokenizer.kind not in ("bpe", "spm"):
        return False
    n_bytes = sum(len(piece) == 1 for piece in _longest_first(tokenizer))
    return n_bytes == 256 and _keeps_length(tokenizer.normalizer)


def _keeps_length(part: dict[str, Any] | None) -> bool:
    """Whether a normalizer removes nothing beyond what NFC does."""
    if part is None or part.get("type") in ("Prepend", "ByteLevel", "NFC"):
        return True
    if part.get("type") == "Replace":
        return part.get("pattern") == {"String": " "} and part.get("content") == "▁"
    return part.get("type") == "Sequence" and all(map(_keeps_length, part.get("normalizers", ())))

"""Vocabulary of a model, from any kind of file."""

import re
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.text.specials import TokenType

Spelling = Literal["byte_level", "metaspace", "wordpiece"]  # how a token spells bytes and spaces
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")
MAX_TOKEN_LENGTH = 2048  # characters; SentencePiece tries every split of a token, Unigram every one at every place
_AS_WRITTEN = (TokenType.CONTROL, TokenType.UNKNOWN, TokenType.USER_DEFINED)

# GPT-2's byte alphabet: every byte written as one printable character, so that merges work on text.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(0x100) if byte not in _PRINTABLE]
CHAR_TO_BYTE: dict[str, int] = {chr(byte): byte for byte in _PRINTABLE}
CHAR_TO_BYTE |= {chr(0x100 + n): byte for n, byte in enumerate(_OTHERS)}
BYTE_TO_CHAR: dict[int, str] = {byte: char for char, byte in CHAR_TO_BYTE.items()}


def is_byte_token(text: str) -> bool:
    """Whether this is SentencePiece's way to write a byte: <0x0A>."""
    return _BYTE.fullmatch(text) is not None


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id. `notes` are for the user: oddities of this vocabulary that were worked around."""

    kind: str  # "bpe" | "spm" | "wordpiece" | "unigram"
    name: str  # the file's own name for it, as `gpt2/llama-bpe`
    tokens: list[str]
    types: list[int]  # TokenType, one a token
    spelling: Spelling
    bos_id: int | None
    eos_id: int | None
    eog_ids: frozenset[int]
    add_bos: bool
    add_eos: bool
    space_prefix: bool  # encoding puts a space in front of the text
    sha256: str
    notes: tuple[str, ...] = ()

    @property
    def answers_after_space(self) -> bool:
        """Whether decoding removes a leading space that does not belong to the text."""
        return self.space_prefix and self.spelling == "metaspace"

    def piece(self, token_id: int) -> bytes:
        """The bytes of an id; UTF-8 characters may be spread over several ids."""
        text, kind = self.tokens[token_id], self.types[token_id]
        if kind in _AS_WRITTEN:
            return text.encode()
        if kind == TokenType.BYTE:
            return bytes([int(text[3:5], 16)])
        if self.spelling == "byte_level":
            return from_byte_level(text)
        if self.spelling == "wordpiece":
            return (text[2:] if text.startswith("##") else f" {text}").encode()
        return text.replace("▁", " ").encode()


def from_byte_level(token: str) -> bytes:
    """The bytes a token stands for; text outside the alphabet (an added token) stands for itself."""
    try:
        return bytes([CHAR_TO_BYTE[char] for char in token])
    except KeyError:
        return token.encode()

"""Text to token ids and back."""

import json
import re
import threading
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from localrun.base.errors import EngineError, UsageError
from localrun.text.gguf_encoder import build_encoder
from localrun.text.gguf_vocabulary import read_gguf_vocabulary
from localrun.text.kept_prompts import KeptPrompts
from localrun.text.specials import TokenType, ids_of_kind
from localrun.text.tokenizer_errors import tokenizer_errors
from localrun.text.vocabulary import Vocabulary

_SURROGATES = re.compile("[\ud800-\udfff]")
LONGEST_RUN = 1 << 20  # characters; of one word the encoder keeps some two hundred bytes for each
_LONG_RUN = re.compile(rf"(?<!\S)\S{{{LONGEST_RUN}}}\S|(?<!\s)\s{{{LONGEST_RUN}}}\s")


class Tokenizer:
    """A vocabulary with its encoder. Safe to share between threads."""

    def __init__(self, vocabulary: Vocabulary, encoder: tokenizers.Tokenizer) -> None:
        self.vocabulary = vocabulary
        self.kind = vocabulary.kind
        self.name = vocabulary.name
        self.sha256 = vocabulary.sha256
        self.vocab_size = len(vocabulary.tokens)
        self.bos_id = vocabulary.bos_id
        self.eos_id = vocabulary.eos_id
        self.eog_ids = vocabulary.eog_ids
        self.add_bos = vocabulary.add_bos
        self.add_eos = vocabulary.add_eos
        self.bos_token, self.eos_token = ("" if i is None else self.token_text(i) for i in (self.bos_id, self.eos_id))
        self.control_ids = frozenset(ids_of_kind(vocabulary.types, TokenType.CONTROL, TokenType.UNKNOWN))
        self._encoder = encoder
        self._added = encoder.get_added_tokens_decoder()
        self._lock = threading.Lock()  # whether control tokens are parsed is a setting of the encoder

    def piece(self, token_id: int) -> bytes:
        """The bytes of an id, control tokens included; none for ids beyond the vocabulary (a padded output matrix)."""
        return self.vocabulary.piece(token_id) if 0 <= token_id < self.vocab_size else b""

    def token_text(self, token_id: int) -> str:
        """A token as the vocabulary spells it."""
        return self.vocabulary.tokens[token_id]

    def piece_text(self, token_id: int) -> str:
        """The text of one token; bytes that are not text on their own are spelled out."""
        if token_id in self.control_ids:
            return self.token_text(token_id)
        return self.piece(token_id).decode(errors="backslashreplace")

    @cached_property
    def control_tokens(self) -> dict[str, int]:
        """Text -> id of the control tokens."""
        return {text: i for i in sorted(self.control_ids) if (text := self.token_text(i))}

    @cached_property
    def _kept(self) -> KeptPrompts:
        texts = {i: token.content for i, token in self._added.items()}
        controls = {i: texts[i] for i in self.control_ids & texts.keys() if not self._added[i].normalized}
        return KeptPrompts(controls, texts.values())

    @cached_property
    def control_pattern(self) -> re.Pattern[str]:
        """Pattern for the text of any control token, the longest where several match."""
        longest_first = sorted(self.control_tokens, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    @cached_property
    def control_letters(self) -> set[str]:
        """The first letter of every control token, of which there may be thousands."""
        return {text[0] for text in self.control_tokens}

    def strips(self, token_id: int) -> tuple[bool, bool]:
        """Whether this added token swallows the white space on its left and on its right."""
        token = self._added.get(token_id)
        return (token.lstrip, token.rstrip) if token else (False, False)

    @cached_property
    def swallows_space(self) -> bool:
        """Whether white space beside some added token belongs to no token."""
        return any(token.lstrip or token.rstrip for token in self._added.values())

    @property
    def normalizer(self) -> dict[str, Any] | None:
        """The normalizer applied to a text before it is encoded, as tokenizer.json writes it."""
        part = self._encoder.normalizer
        parsed: dict[str, Any] | None = None if part is None else json.loads(part.__getstate__())
        return parsed

    def encode(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        """Ids of `text`. `special`: the text of a control token becomes that token; else it stays text.

        `bos`: begin with exactly one BOS if the model wants one. Lone surrogates, which are not text, become U+FFFD.
        Raises UsageError for a word, or white space, of more than LONGEST_RUN characters.
        """
        _check_runs(text)
        text = _SURROGATES.sub("\ufffd", text)
        ids = self._kept.encode(text, self._parse) if special else self._encode(text, special=False)
        if not special and not self.control_ids.isdisjoint(ids):
            ids = self._spell_out(ids, text)
        return self.with_bos(ids) if bos else ids

    def with_bos(self, ids: list[int]) -> list[int]:
        """`ids` after exactly one BOS if the model wants one."""
        if not self.add_bos or self.bos_id is None or ids[:1] == [self.bos_id]:
            return ids
        return [self.bos_id, *ids]

    def decode(self, ids: Iterable[int], *, special: bool = False) -> str:
        """Text of `ids`, without control tokens unless `special`; bytes that are not UTF-8 become U+FFFD."""
        silent = frozenset[int]() if special else self.control_ids
        text = b"".join(self.piece(i) for i in ids if i not in silent).decode(errors="replace")
        return text.removeprefix(" ") if self.vocabulary.space_prefix else text

    def _spell_out(self, ids: list[int], text: str) -> list[int]:
        """`ids` with control tokens that are only words of `text` spelled in letters."""
        spelled: list[int] = []
        for i in ids:
            word = self.token_text(i) if i in self.control_ids else ""
            spelled += [j for char in word for j in self._encode(char, special=False)] if word and word in text else [i]
        return spelled

    def _parse(self, text: str) -> list[int]:
        return self._encode(text, special=True)

    def _encode(self, text: str, *, special: bool) -> list[int]:
        def error(reason: str) -> EngineError:
            message = f"the tokenizer failed on a text of {len(text):,} characters: {reason}"
            return EngineError(message, "try a shorter text, or another conversion of the model")

        with self._lock, tokenizer_errors(error):
            self._encoder.encode_special_tokens = not special
            return self._encoder.encode(text, add_special_tokens=False).ids


def _check_runs(text: str) -> None:
    """Raise UsageError for a word, or white space, of more than LONGEST_RUN characters."""
    found = _LONG_RUN.search(text) if len(text) > LONGEST_RUN else None
    if found:
        what = "white space" if found[0].isspace() else "a word"
        message = f"the text has {what} of more than {LONGEST_RUN:,} characters"
        raise UsageError(message, "give a part of it, or see whether it is text")


def tokenizer_from_gguf(metadata: Mapping[str, Any], path: str | Path = "") -> Tokenizer:
    """The tokenizer of a GGUF file from its key-values. Raises ModelFileError UNSUPPORTED or BAD_VOCAB."""
    source = read_gguf_vocabulary(metadata, str(path))
    return Tokenizer(source.vocabulary, build_encoder(source, str(path)))


def tokenizer_from_folder(folder: str | Path) -> Tokenizer:
    """The tokenizer of a folder with a tokenizer.json; weights are not needed.

    Raises ModelFileError UNSUPPORTED, BAD_TOKENIZER or BAD_CONFIG; NotFoundError without a tokenizer.json.
    """
    from localrun.text.folder_tokenizer import read_folder_tokenizer  # a run from a GGUF starts without it

    return Tokenizer(*read_folder_tokenizer(Path(folder)))

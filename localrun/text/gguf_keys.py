"""Tokenizer keys of a GGUF file, each checked when it is first used."""

import hashlib
import math
from array import array
from functools import cached_property

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.formats.files import shown
from localrun.text.gguf_kind import MERGED, PREFIX, TokenizerKind
from localrun.text.merges import first_bad_merge
from localrun.text.specials import TokenType, ids_of_kind
from localrun.text.tokenizer_parts import character_map_problem
from localrun.text.vocabulary import CHAR_TO_BYTE, MAX_TOKEN_LENGTH, is_byte_token

SCORED = {"llama", "t5"}
_DEFAULT_IDS = {
    "llama": {"unk": 0, "bos": 1, "eos": 2},
    "t5": {"eos": 1, "unk": 2},
    "bert": {"unk": 100, "bos": 101, "eos": 102},
}
_ID_KEYS = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "eot": "eot_token_id",
    "eom": "eom_token_id",
    "unk": "unknown_token_id",
    **{f"fim_{part}": f"fim_{part}_token_id" for part in ("pre", "suf", "mid", "pad", "rep", "sep")},
}
_MAX_TOKENS = 1 << 22


@dataclass(frozen=True)
class TokenizerKeys(TokenizerKind):
    """Tokenizer keys of a file. Raises ModelFileError: UNSUPPORTED for an unknown kind, or BAD_VOCAB."""

    @cached_property
    def tokens(self) -> list[str]:
        tokens: list[str] = self.data.get_array(PREFIX + "tokens", str, [])
        if "" in tokens:
            tokens = [text or f"[EMPTY_{i}]" for i, text in enumerate(tokens)]
        if not tokens:
            raise self._bad("the list of tokens is missing or empty")
        if len(tokens) > _MAX_TOKENS:
            raise self._bad(f"{len(tokens):,} tokens are more than any model has")
        if (longest := max(map(len, tokens))) > MAX_TOKEN_LENGTH:
            raise self._bad(f"a token is {longest:,} characters long")
        try:
            "".join(tokens).encode()
        except UnicodeEncodeError:
            raise self._bad("a token is not UTF-8 text") from None
        return tokens

    @cached_property
    def index(self) -> dict[str, int]:
        """Text -> id."""
        index = dict(zip(self.tokens, range(len(self.tokens)), strict=True))
        if len(index) < len(self.tokens):
            twice = next(text for i, text in enumerate(self.tokens) if index[text] != i)
            raise self._bad(f"the token {shown(twice)} appears twice")
        return index

    @cached_property
    def types(self) -> list[int]:
        """TokenType of every token."""
        usual = [TokenType.NORMAL.value] * len(self.tokens)
        types: list[int] = self.data.get_array(PREFIX + "token_type", int, usual)
        self._check_length("token types", len(types))
        if unknown := set(types) - set(TokenType):
            raise self._bad(f"there is no token type {min(unknown)}")
        types = types[: len(self.tokens)]
        for i in ids_of_kind(types, TokenType.BYTE):
            if not is_byte_token(self.tokens[i]):
                raise self._bad(f"{shown(self.tokens[i])} is typed as a byte, and names none")
        return types

    @cached_property
    def scores(self) -> list[float]:
        """Score of every token; may be empty for kinds without scores."""
        scores: list[float] = self.data.get(PREFIX + "scores", [])
        if not scores and self.model not in SCORED:
            return scores
        if type(scores) is not list or not set(map(type, scores)) <= {int, float}:
            raise self._bad("the scores are not a list of numbers")
        self._check_length("scores", len(scores))
        if any(map(math.isnan, scores)):
            raise self._bad("a score is not a number")
        return scores

    @cached_property
    def merges(self) -> list[tuple[str, str]]:
        """Pairs of tokens, best first; empty for kinds without merges."""
        if self.model not in MERGED:
            return []
        if PREFIX + "merges" not in self.data:
            raise self._unsupported("the file has a byte-pair vocabulary without merges")
        merges = self.data.get_array(PREFIX + "merges", str)
        cuts = [merge.find(" ", 1) for merge in merges]  # the left part may itself begin with a space
        pairs = [(merge[:cut], merge[cut + 1 :]) for merge, cut in zip(merges, cuts, strict=True)]
        bad = first_bad_merge(pairs, self.index)
        if bad is not None:
            raise self._bad(f"merge {bad:,}, {shown(merges[bad])}, is not made of two tokens that give a third")
        return pairs

    @cached_property
    def ids(self) -> dict[str, int]:
        """Tokens of special roles: bos, eos, unk, fim_pre …"""
        n_tokens = len(self.tokens)
        said = {role: self.data.get_int(PREFIX + key) for role, key in _ID_KEYS.items() if PREFIX + key in self.data}
        for role in ("bos", "eos"):
            if not 0 <= said.get(role, 0) < n_tokens:
                raise self._bad(f"the {role} token is number {said[role]:,} of {n_tokens:,}")
        usual = {role: i for role, i in _DEFAULT_IDS.get(self.model, {}).items() if i < n_tokens}
        return usual | {role: i for role, i in said.items() if 0 <= i < n_tokens}

    @cached_property
    def character_map(self) -> bytes:
        """SentencePiece's character map for normalization; empty where there is none."""
        values = self.data.get_array(PREFIX + "precompiled_charsmap", int, [])
        if any(not -128 <= value < 256 for value in values):
            raise self._bad("the character map does not consist of bytes")
        character_map = bytes(value & 0xFF for value in values)
        if character_map and (problem := character_map_problem(character_map)):
            raise self._bad(problem)
        return character_map

    def says(self, key: str, usual: bool) -> bool:
        return self.data.get_bool(PREFIX + key, usual)

    def check_bytes(self) -> None:
        """Check that the byte tokens exist, which spell text that has no token."""
        if self.model == "llama":
            missing = [b for b in range(256) if not self._spells(b)]
            if missing:
                raise self._bad(f"there is no token for the byte 0x{missing[0]:02X}")
        elif self.model in MERGED and self.pre.byte_level and not any(char in self.index for char in CHAR_TO_BYTE):
            raise self._bad("there is no token for any single byte")

    def sha256(self, types: list[int]) -> str:
        """Hash of everything that determines ids; `types` are the corrected token types."""
        digest = hashlib.sha256()
        merges = self.data.get_array(PREFIX + "merges", str, [])
        for texts in ([self.model, self.pre_name], self.tokens, merges):
            digest.update(b"%d\0" % len(texts))
            digest.update("\0".join(texts).encode(errors="surrogateescape"))
        digest.update(bytes(types))
        digest.update(array("d", self.scores).tobytes())
        return digest.hexdigest()

    def _spells(self, byte: int) -> bool:
        return f"<0x{byte:02X}>" in self.index or (byte < 128 and chr(byte) in self.index)

    def _check_length(self, what: str, length: int) -> None:
        if length < len(self.tokens):
            raise self._bad(f"{len(self.tokens):,} tokens have only {length:,} {what}")

    def _bad(self, message: str) -> ModelFileError:
        return ModelFileError("BAD_VOCAB", message, path=self.path)

"""The tokenizer keys of a GGUF file, checked before anything is built from them."""

import hashlib
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localrun.base.errors import ModelFileError
from localrun.formats.files import shown
from localrun.formats.metadata import Metadata
from localrun.text.byte_level import CHAR_TO_BYTE
from localrun.text.character_map import character_map_problem
from localrun.text.merges import first_bad_merge
from localrun.text.pretokenize import PRETOKENIZERS, PreTokenizer
from localrun.text.specials import TokenType, find_specials, ids_of_kind
from localrun.text.vocabulary import MAX_TOKEN_LENGTH, Vocabulary, is_byte_token

_G = "tokenizer.ggml."
_MERGED = {"gpt2", "gemma4"}
_KINDS = {"gpt2": "bpe", "gemma4": "bpe", "llama": "spm", "t5": "unigram", "bert": "wordpiece"}
_SCORED = {"llama", "t5"}
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
_NO_RSTRIP = {"<unk>", "<s>", "<|endoftext|>"}  # Phi-3: every other special token swallows the space after it
_MAX_TOKENS = 1 << 22


@dataclass(frozen=True)
class GgufVocabulary:
    """A checked vocabulary, and what only its encoder needs."""

    vocabulary: Vocabulary
    index: dict[str, int]  # text -> id
    scores: Sequence[float]
    merges: list[tuple[str, str]]
    pre: PreTokenizer
    unk_token: str | None
    strips_right: frozenset[int]  # special tokens that swallow the white space after them
    lowercase: bool
    character_map: bytes  # SentencePiece's, how to normalize
    merges_spaces: bool  # runs of spaces are one, and none are at the ends


def read_gguf_vocabulary(metadata: Mapping[str, Any], path: str = "") -> GgufVocabulary:
    """Raises ModelFileError: UNSUPPORTED for a kind of tokenizer we do not have, BAD_VOCAB for a damaged one."""
    present = {key: value for key, value in metadata.items() if value is not None}
    data = Metadata(present, Path(path or "GGUF metadata"))
    model = data.get_str(_G + "model", "")
    pre = _pre_tokenizer(data, model, path)
    if model in _MERGED and _G + "merges" not in data:
        raise _unsupported("the file has a byte-pair vocabulary without merges", path)
    tokens = [text or f"[EMPTY_{i}]" for i, text in enumerate(data.get_array(_G + "tokens", str, []))]
    index = {text: i for i, text in enumerate(tokens)}
    _check_tokens(tokens, index, path)
    types = _types(data, tokens, path)
    scores = _scores(data, len(tokens), path)
    merges = _merges(data, index, path) if model in _MERGED else []
    ids = _DEFAULT_IDS.get(model, {}) | _special_ids(data, len(tokens), path)
    ids = {role: i for role, i in ids.items() if i < len(tokens)}
    specials = find_specials(index, types, {role: i for role, i in ids.items() if role not in ("bos", "unk")})
    _check_bytes(model, pre, tokens, index, types, path)

    adds_bos_unasked = model in ("llama", "bert") or pre.add_bos
    add_bos = pre is PRETOKENIZERS["gemma4"] or data.get_bool(_G + "add_bos_token", adds_bos_unasked)
    spelled_in_bytes = model == "gpt2" and pre.byte_level
    name = data.get_str(_G + "pre", "")
    missing = "the file does not name its pre-tokenizer; the default may split words unlike the model was trained on"
    vocabulary = Vocabulary(
        kind=_KINDS[model],
        name=f"{model}/{name}" if name else model,
        tokens=tokens,
        types=specials.types,
        spelling="byte_level" if spelled_in_bytes else "metaspace",
        bos_id=ids.get("bos"),
        eos_id=ids.get("eos"),
        eog_ids=specials.eog_ids,
        add_bos=add_bos and "bos" in ids,
        add_eos=data.get_bool(_G + "add_eos_token", model in ("bert", "t5")) and "eos" in ids,
        space_prefix=data.get_bool(_G + "add_space_prefix", model == "llama") and model in _SCORED,
        sha256=_sha256(data, tokens, specials.types, scores),
        notes=(missing,) if model == "gpt2" and not name else (),
    )
    is_phi3 = any(mark in data.get_str("general.name", "").lower() for mark in ("phi-3", "phi3"))
    special = ids_of_kind(specials.types, TokenType.CONTROL, TokenType.UNKNOWN, TokenType.USER_DEFINED)
    return GgufVocabulary(
        vocabulary=vocabulary,
        index=index,
        scores=scores,
        merges=merges,
        pre=pre,
        unk_token=tokens[ids["unk"]] if "unk" in ids else None,
        strips_right=frozenset(i for i in special if is_phi3 and tokens[i] not in _NO_RSTRIP),
        lowercase=data.get_bool(_G + "normalizer.lowercase", True),
        character_map=_character_map(data, path),
        merges_spaces=data.get_bool(_G + "remove_extra_whitespaces", False),
    )


def check_kind(metadata: Mapping[str, Any], path: str = "") -> None:
    """Raises ModelFileError UNSUPPORTED for a kind of tokenizer we do not have. Reads no vocabulary."""
    data = Metadata(metadata, Path(path or "GGUF metadata"))
    _pre_tokenizer(data, data.get_str(_G + "model", ""), path)


def _pre_tokenizer(data: Metadata, model: str, path: str) -> PreTokenizer:
    if not model:
        raise _unsupported("the file has no tokenizer", path)
    if model not in _KINDS:
        raise _unsupported(f"the tokenizer is of a kind localrun does not know: {shown(model)}", path)
    name = "gemma4" if model == "gemma4" else data.get_str(_G + "pre", "") or "default"
    if model in _MERGED and name not in PRETOKENIZERS:
        message = f"the tokenizer splits words in a way localrun does not know: pre-tokenizer {shown(name)}"
        raise _unsupported(message, path)
    return PRETOKENIZERS[name if model in _MERGED else "default"]


def _check_tokens(tokens: list[str], index: Mapping[str, int], path: str) -> None:
    if not tokens:
        raise _bad("the list of tokens is missing or empty", path)
    if len(tokens) > _MAX_TOKENS:
        raise _bad(f"{len(tokens):,} tokens are more than any model has", path)
    if (longest := max(map(len, tokens))) > MAX_TOKEN_LENGTH:
        raise _bad(f"a token is {longest:,} characters long", path)
    if len(index) < len(tokens):
        twice = next(text for i, text in enumerate(tokens) if index[text] != i)
        raise _bad(f"the token {shown(twice)} is there twice", path)
    try:
        "".join(tokens).encode()
    except UnicodeEncodeError:
        raise _bad("a token is not UTF-8 text", path) from None


def _types(data: Metadata, tokens: list[str], path: str) -> list[int]:
    types: list[int] = data.get_array(_G + "token_type", int, [TokenType.NORMAL.value] * len(tokens))
    _check_length("token types", len(types), len(tokens), path)
    if unknown := set(types) - set(TokenType):
        raise _bad(f"there is no token type {min(unknown)}", path)
    types = types[: len(tokens)]
    for i in ids_of_kind(types, TokenType.BYTE):
        if not is_byte_token(tokens[i]):
            raise _bad(f"{shown(tokens[i])} is typed as a byte, and names none", path)
    return types


def _scores(data: Metadata, n_tokens: int, path: str) -> list[float]:
    scores: list[float] = data.get(_G + "scores", [])
    if not scores and data.get_str(_G + "model", "") not in _SCORED:
        return scores
    if type(scores) is not list or not set(map(type, scores)) <= {int, float}:
        raise _bad("the scores are not a list of numbers", path)
    _check_length("scores", len(scores), n_tokens, path)
    if any(map(math.isnan, scores)):
        raise _bad("a score is not a number", path)
    return scores


def _merges(data: Metadata, index: Mapping[str, int], path: str) -> list[tuple[str, str]]:
    merges = data.get_array(_G + "merges", str)
    cuts = [merge.find(" ", 1) for merge in merges]  # the left part may itself begin with a space
    pairs = [(merge[:cut], merge[cut + 1 :]) for merge, cut in zip(merges, cuts, strict=True)]
    bad = first_bad_merge(pairs, index)
    if bad is not None:
        raise _bad(f"merge {bad:,}, {shown(merges[bad])}, is not made of two tokens that give a third", path)
    return pairs


def _special_ids(data: Metadata, n_tokens: int, path: str) -> dict[str, int]:
    ids = {role: data.get_int(_G + key) for role, key in _ID_KEYS.items() if _G + key in data}
    for role in ("bos", "eos"):
        if not 0 <= ids.get(role, 0) < n_tokens:
            raise _bad(f"the {role} token is number {ids[role]:,} of {n_tokens:,}", path)
    return {role: i for role, i in ids.items() if 0 <= i < n_tokens}


def _check_bytes(
    model: str, pre: PreTokenizer, tokens: list[str], index: Mapping[str, int], types: list[int], path: str
) -> None:
    """Text that no token spells falls back to bytes, so these have to be there."""
    if model == "llama":
        missing = [b for b in range(256) if f"<0x{b:02X}>" not in index and not (b < 128 and chr(b) in index)]
        if missing:
            raise _bad(f"there is no token for the byte 0x{missing[0]:02X}", path)
    elif model in _MERGED and pre.byte_level and not any(char in index for char in CHAR_TO_BYTE):
        raise _bad("there is no token for any single byte", path)


def _character_map(data: Metadata, path: str) -> bytes:
    values = data.get_array(_G + "precompiled_charsmap", int, [])
    if any(not -128 <= value < 256 for value in values):
        raise _bad("the character map does not consist of bytes", path)
    character_map = bytes(value & 0xFF for value in values)
    if character_map and (problem := character_map_problem(character_map)):
        raise _bad(problem, path)
    return character_map


def _check_length(what: str, length: int, n_tokens: int, path: str) -> None:
    if length < n_tokens:
        raise _bad(f"{n_tokens:,} tokens have only {length:,} {what}", path)


def _sha256(data: Metadata, tokens: list[str], types: list[int], scores: list[float]) -> str:
    digest = hashlib.sha256()
    for texts in ([data[_G + "model"], data.get(_G + "pre", "")], tokens, data.get(_G + "merges", [])):
        digest.update(b"%d\0" % len(texts))
        digest.update("\0".join(texts).encode(errors="surrogateescape"))
    digest.update(bytes(types))
    digest.update(array("d", scores).tobytes())
    return digest.hexdigest()


def _bad(message: str, path: str) -> ModelFileError:
    return ModelFileError("BAD_VOCAB", message, path=path)


def _unsupported(message: str, path: str) -> ModelFileError:
    return ModelFileError("UNSUPPORTED", message, path=path, hint="try another conversion of the model")

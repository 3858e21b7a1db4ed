"""Tiny vocabularies made by hand: GGUF key-values and tokenizer.json, small enough to read."""

import json
import re
from pathlib import Path
from typing import Any

from localrun.text.tokenizer import Tokenizer, tokenizer_from_gguf
from localrun.text.vocabulary import BYTE_TO_CHAR

_TAG = re.compile(r"<\|?[A-Za-z_/:|｜▁]+[^<>\s'\"{}]*\|?>|\[/?[A-Z_]{3,}\]|<｜[^<>]+｜>")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
G = "tokenizer.ggml."

WORDS = ("he", "ll", "llo", "hello", "Ġw", "or", "ld", "Ġwor", "Ġworld", "12", "ĠĠ")
MERGES = ("h e", "l l", "ll o", "he llo", "Ġ w", "o r", "l d", "Ġw or", "Ġwor ld", "1 2", "Ġ Ġ")
SPECIALS = ("<|bos|>", "<|im_start|>", "<|im_end|>", "<tag>")


def byte_level(pre: str = "gpt-2", specials: tuple[str, ...] = SPECIALS, **changes: Any) -> dict[str, Any]:
    """256 bytes, a few merged words, then `specials`, all CONTROL but those that are named <tag…>. `changes` are keys
    without their prefix; None takes a key away."""
    tokens = [BYTE_TO_CHAR[byte] for byte in range(256)] + [*WORDS, *specials]
    types = [NORMAL] * (256 + len(WORDS)) + [USER_DEFINED if text.startswith("<tag") else CONTROL for text in specials]
    first = 256 + len(WORDS)
    values = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": types,
        "merges": list(MERGES),
        "bos_token_id": first,
        "eos_token_id": first + len(specials) - 2,
    }
    return _keys(values | changes)


def sentencepiece(
    words: tuple[str, ...] = ("▁", "h", "e", "l", "o", "he", "ll", "hell", "hello", "▁hello"), **changes: Any
) -> dict[str, Any]:
    """unk, BOS, EOS, 256 byte tokens, then `words`, the later the better scored."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(words)
    scores = [0.0] * 259 + [float(i - len(words)) for i in range(len(words))]
    return _keys({"model": "llama", "tokens": tokens, "token_type": types, "scores": scores} | changes)


def _keys(values: dict[str, Any]) -> dict[str, Any]:
    return {G + name: value for name, value in values.items() if value is not None}


def vocabulary_of(source: str) -> Tokenizer:
    """Bytes, and every tag that a template's source spells as a control token."""
    tags = sorted(set(_TAG.findall(source)) | {"<s>", "</s>", "<|im_start|>", "<|im_end|>"})
    keys = byte_level(specials=tuple(tags), merges=[], token_type=[1] * 267 + [3] * len(tags))
    return tokenizer_from_gguf(keys | {"tokenizer.ggml.eos_token_id": 267})


def tokenizer_json(folder: Path, content: dict[str, Any], **files: dict[str, Any]) -> Path:
    """A folder with a tokenizer.json and other JSON files beside it, as `tokenizer_config={…}`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in {"tokenizer": content, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder


def small_bpe(**changes: Any) -> dict[str, Any]:
    """The smallest tokenizer.json: a, b, ab, and one special token."""
    special = {"id": 3, "content": "<x>", "special": True, "normalized": False}
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
    }
    return content | changes

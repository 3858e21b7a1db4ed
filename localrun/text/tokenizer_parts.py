"""Normalizer and pre-tokenizer of a tokenizer.json: known parts only, with a limit on how they grow a text."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localrun.formats.files import bad_file, shown
from localrun.text.pattern_cost import runs_away
from localrun.text.tokenizer_model import bad_tokenizer

_NORMALIZERS = {
    *("Sequence", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "Strip", "StripAccents", "Replace", "Prepend"),
    *("Precompiled", "BertNormalizer", "ByteLevel"),
}
_PRE_TOKENIZERS = {
    *("Sequence", "BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "FixedLength", "Metaspace"),
    *("Punctuation", "Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit"),
}
_MAX_PARTS = 64
_MAX_DEPTH = 8
_MAX_GROWTH = 64  # how many times longer all parts together may make a text
_MAX_PATTERN = 8192
_MAX_PREFIX = 64
_MAX_REPLACEMENT = 256  # bytes; the longest in use is a word of Arabic in 33


def check_parts(normalizer: Any, pre_tokenizer: Any, path: Path) -> None:
    """Raise ModelFileError: UNSUPPORTED for an unknown part, BAD_TOKENIZER for a malformed or too costly one."""
    parts = list(_walk(normalizer, "normalizers", _NORMALIZERS, path))
    parts += _walk(pre_tokenizer, "pretokenizers", _PRE_TOKENIZERS, path)
    if len(parts) > _MAX_PARTS:
        raise bad_tokenizer(f"it rewrites text in {len(parts)} steps", path)
    growth = 1.0
    for part in parts:
        growth *= _growth(part, path)
    if growth > _MAX_GROWTH:
        raise bad_tokenizer(f"it may make a text {growth:,.0f} times longer", path)


def part_types(part: Any) -> set[str]:
    """Types of all parts of a normalizer, pre-tokenizer or decoder."""
    types: set[str] = set()
    todo = [part]
    while todo:
        if isinstance(part := todo.pop(), dict):
            types.add(str(part.get("type")))
            todo += [inner for value in part.values() if isinstance(value, list) for inner in value]
    return types


def _walk(part: Any, children: str, known: set[str], path: Path, depth: int = 0) -> Iterator[dict[str, Any]]:
    if part is None:
        return
    if not isinstance(part, dict) or depth > _MAX_DEPTH:
        raise bad_tokenizer("a normalizer or pre-tokenizer is malformed", path)
    kind = part.get("type")
    if kind not in known:
        raise bad_file("UNSUPPORTED", f"the tokenizer has a part localrun does not know: {shown(str(kind))}", path)
    if kind != "Sequence":
        yield part
        return
    if not isinstance(inner := part.get(children), list):
        raise bad_tokenizer(f"a sequence has no {children}", path)
    for child in inner:
        yield from _walk(child, children, known, path, depth + 1)


def _growth(part: dict[str, Any], path: Path) -> float:
    """Factor by which this part may lengthen a text."""
    kind = part["type"]
    if kind in ("Replace", "Split"):
        pattern = part.get("pattern")
        is_known = isinstance(pattern, dict) and len(pattern) == 1 and next(iter(pattern)) in ("String", "Regex")
        text = next(iter(pattern.values())) if isinstance(pattern, dict) and is_known else None
        if not isinstance(text, str) or not text or len(text) > _MAX_PATTERN:
            raise bad_tokenizer("a pattern is missing, empty or too long", path)
        is_regex = "Regex" in part["pattern"]
        if is_regex and runs_away(text):
            raise bad_tokenizer(f"matching the pattern {shown(text)} may take forever", path)
        content = part.get("content", "")
        if kind == "Split" or not isinstance(content, str):
            return 1.0
        return len(content) + 1.0 if is_regex else max(1.0, len(content) / len(text))
    if kind == "Prepend" and len(str(part.get("prepend"))) > _MAX_PREFIX:
        raise bad_tokenizer("the prefix it puts before a text is too long", path)
    if kind == "Precompiled":
        _check_character_map(part, path)
    return {"ByteLevel": 2.0, "BertNormalizer": 3.0}.get(kind, 1.0)


def _check_character_map(part: dict[str, Any], path: Path) -> None:
    try:
        data = base64.b64decode(str(part.get("precompiled_charsmap")), validate=True)
    except ValueError:
        raise bad_tokenizer("the character map is not base64", path) from None
    if problem := character_map_problem(data):
        raise bad_tokenizer(problem, path)


def character_map_problem(data: bytes) -> str:
    """The flaw of a character map, or nothing.

    It is SentencePiece's compiled normalization: the size of a trie, the trie, and replacements that end with NUL.
    """
    n_trie_bytes = int.from_bytes(data[:4], "little")
    replacements = data[4 + n_trie_bytes :]
    if not n_trie_bytes or n_trie_bytes % 4 or not replacements:
        return "the character map is cut short"
    if max(map(len, replacements.split(b"\0"))) > _MAX_REPLACEMENT:
        return "the character map makes long texts of single characters"
    return ""

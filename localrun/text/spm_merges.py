"""Merges of SentencePiece vocabularies, computed from their scores and cached on disk."""

import hashlib
import sys
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from localrun.base.files import remove_unfinished, write_whole
from localrun.base.paths import writable_folder
from localrun.base.small_file import read_small
from localrun.text.specials import TokenType

_NEVER_MERGED = (TokenType.UNKNOWN, TokenType.CONTROL, TokenType.BYTE)
_MAGIC = b"localrun merges 1\n"
_MAX_BYTES = 256 << 20
_WORTH_KEEPING = 100_000  # tokens; a smaller vocabulary is quicker computed than read


def spm_merges(
    tokens: Sequence[str], index: Mapping[str, int], types: Sequence[int], scores: Sequence[float], sha256: str
) -> list[tuple[str, str]]:
    """Every way to join two tokens to a third, best token first. Text never becomes a control token."""
    if len(tokens) < _WORTH_KEEPING:
        pairs = _find_pairs(tokens, index, types, scores)
    else:
        folder = writable_folder("cache")
        path = folder / "merges" / sha256 if folder else None
        if path:
            remove_unfinished(path.parent)
        stored = _read(path, len(tokens)) if path else None
        pairs = stored or _find_pairs(tokens, index, types, scores)
        if path and not stored:
            _write(path, pairs)
    return [(tokens[left], tokens[right]) for left, right in zip(pairs[::2], pairs[1::2], strict=True)]


def _find_pairs(
    tokens: Sequence[str], index: Mapping[str, int], types: Sequence[int], scores: Sequence[float]
) -> "array[int]":
    """The ids of all pairs: left, right, left, right …"""
    pairs = array("I")
    best_first = sorted(range(len(tokens)), key=lambda i: -scores[i])
    for i in best_first:
        if types[i] in _NEVER_MERGED:
            continue
        text = tokens[i]
        splits = []
        for cut in range(1, len(text)):
            left = index.get(text[:cut])
            if left is not None and (right := index.get(text[cut:])) is not None:
                splits.append((left, right))
        for left, right in sorted(splits):
            pairs.append(left)
            pairs.append(right)
    return pairs


def _read(path: Path, n_tokens: int) -> "array[int] | None":
    """The pairs of an intact file; None where it is missing or damaged, and they are computed again."""
    try:
        data = read_small(path, _MAX_BYTES)
    except OSError:
        return None
    header = len(_MAGIC) + 32
    magic, digest, body = data[: len(_MAGIC)], data[len(_MAGIC) : header], data[header:]
    if magic != _MAGIC or digest != hashlib.sha256(body).digest() or len(body) % 8:
        return None
    pairs = array("I", body)
    if sys.byteorder == "big":
        pairs.byteswap()
    return pairs if not pairs or max(pairs) < n_tokens else None


def _write(path: Path, pairs: "array[int]") -> None:
    stored = array("I", pairs)
    if sys.byteorder == "big":
        stored.byteswap()
    body = stored.tobytes()
    with suppress(OSError):  # nothing is lost: the next start computes again
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(path, _MAGIC + hashlib.sha256(body).digest() + body)

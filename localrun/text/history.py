"""Continued chats: known ids stay, and only the new text is encoded.

A template renders the whole chat every turn. Where its text continues the text of the known ids, they stay and the rest
comes from the new encoding. A model often writes a text with other ids than the tokenizer would, so texts are compared
instead of ids. Where the texts differ, the template rewrote an earlier message.
"""

import codecs
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.image_ids import tokens_alone
from localrun.text.tokenizer import Tokenizer

_OPEN, _CLOSE = "\ud800", "\ud801"  # around the id of a control token; decoded text has no surrogates


@dataclass(frozen=True, slots=True)
class Spliced:
    """`ids` begin with `n_kept` known ones; `rewritten_at` is where the texts began to differ."""

    ids: list[int]
    n_kept: int
    rewritten_at: int | None = None


@dataclass(frozen=True, slots=True)
class _Spelled:
    """The text of ids, and how much of it is complete before each of them, and at the end."""

    text: str
    starts: list[int]


def splice(tokenizer: Tokenizer, known: Sequence[int], encoded: Sequence[int]) -> Spliced:
    """The ids of a continued chat. `known` are those the engine had, `encoded` those of the whole rendered chat.

    All of `known` stays if its text begins the text of `encoded`, else as much of it as does.
    """
    same = _common(known, encoded)
    if same == len(known):
        return Spliced(list(encoded), same)
    base = _last_control(tokenizer, known, same)  # what lies before is equal, and a text begins behind it
    old, new = _spell(tokenizer, known[base:]), _spell(tokenizer, encoded[base:])
    if new.text.startswith(old.text):
        tail = _from(tokenizer, encoded[base:], new, len(old.text))
        if tail is not None:
            return Spliced([*known, *tail], len(known))
    shared = _common(old.text, new.text)
    rewritten = shared < len(old.text)
    cut = max(start for start in set(old.starts).intersection(new.starts) if start <= shared)
    kept = base + old.starts.index(cut)
    return Spliced([*known[:kept], *encoded[base + new.starts.index(cut) :]], kept, kept if rewritten else None)


def with_spaces(
    tokenizer: Tokenizer, known: Sequence[int], messages: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """`messages` whose answers begin with the space that the model wrote before them.

    SentencePiece puts a space before every text, and stored texts are without it.
    """
    said = tokenizer.decode(tokens_alone(known), special=True)
    spaced, position = [], 0
    for message in messages:
        content = message.get("content")
        if isinstance(content, str) and content and (found := said.find(content, position)) >= 0:
            position = found + len(content)
            if message.get("role") == "assistant" and found and said[found - 1] == " ":
                message = {**message, "content": f" {content}"}
        spaced.append(message)
    return spaced


def rewritten_turn(tokenizer: Tokenizer, spliced: Spliced, messages: Sequence[Mapping[str, Any]]) -> int:
    """The turn, from 1 on, in which the texts began to differ; 0 for text before the first turn."""
    before = tokenizer.decode(tokens_alone(spliced.ids[: spliced.n_kept]), special=True)
    turn, position = 0, 0
    for message in messages:
        content = last_text(message.get("content"))
        if message.get("role") != "user" or content is None:
            continue
        found = before.find(content.strip(), position)
        if found < 0:
            break
        turn, position = turn + 1, found + len(content.strip())
    return turn


def last_text(content: object) -> str | None:
    """A message's text, of parts the last one; None where it has none."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
        content = texts[-1] if texts else None
    return content if isinstance(content, str) else None


def change(tokenizer: Tokenizer, spliced: Spliced, messages: Sequence[Mapping[str, Any]]) -> tuple[int, int] | None:
    """The token where the texts began to differ, and its turn (from 1 on, or 0); None where they did not."""
    at = spliced.rewritten_at
    return None if at is None else (at, rewritten_turn(tokenizer, spliced, messages))


def note(at: int, turn: int) -> str:
    """Describe a change to the user."""
    start = (
        "the chat begins in another way" if at else "another model answered before, or the chat begins in another way"
    )
    what = f"the template rewrote turn {turn}" if turn else start
    return f"differs at token {at}: {what}"


def _spell(tokenizer: Tokenizer, ids: Sequence[int]) -> _Spelled:
    control = tokenizer.control_ids
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts: list[str] = []
    starts: list[int] = []
    length = 0
    # Where encoding puts a space before a text, a generated text has one, too, which a template may show as a second.
    padded = at_start = tokenizer.vocabulary.space_prefix
    for i in ids:
        starts.append(length)
        if i in control or not 0 <= i < tokenizer.vocab_size:
            text = f"{decoder.decode(b'', True)}{_OPEN}{i}{_CLOSE}"
            at_start = padded
        else:
            text = decoder.decode(tokenizer.piece(i))
            text = text.lstrip(" ") if at_start else text
            at_start = at_start and not text
        texts.append(text)
        length += len(text)
    texts.append(decoder.decode(b"", True))
    return _Spelled("".join(texts), [*starts, length + len(texts[-1])])


def _from(tokenizer: Tokenizer, ids: Sequence[int], spelled: _Spelled, position: int) -> list[int] | None:
    """The ids from a position in their text on.

    A token across the position is tokenized again; None where that is impossible.
    """
    first = next(i for i, start in enumerate(spelled.starts) if start >= position)
    if spelled.starts[first] == position:
        return list(ids[first:])
    cut = _shortest(tokenizer, spelled.text[position : spelled.starts[first]].encode())
    return None if cut is None else [*cut, *ids[first:]]


def _shortest(tokenizer: Tokenizer, text: bytes) -> list[int] | None:
    """Tokenize a few bytes, longest pieces first; None where the vocabulary cannot spell them."""
    pieces = _text_pieces(tokenizer)
    ids = []
    while text:
        end = next((end for end in range(len(text), 0, -1) if text[:end] in pieces), 0)
        if not end:
            return None
        ids.append(pieces[text[:end]])
        text = text[end:]
    return ids


@lru_cache(maxsize=2)
def _text_pieces(tokenizer: Tokenizer) -> dict[bytes, int]:
    """Bytes -> id of all text tokens."""
    return {tokenizer.piece(i): i for i in range(tokenizer.vocab_size) if i not in tokenizer.control_ids}


def _last_control(tokenizer: Tokenizer, ids: Sequence[int], end: int) -> int:
    """Index of the last control token before `end`; 0 without one."""
    return next((i for i in range(end - 1, -1, -1) if ids[i] in tokenizer.control_ids), 0)


def _common(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Length of the common prefix."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

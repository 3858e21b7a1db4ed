"""Detokenizer, stop strings and reasoning tags against the whole text at once, for random cuts."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.text.detokenizer import Detokenizer
from localrun.text.marks import Marks
from localrun.text.reasoning import KNOWN_TAGS, ReasoningSplitter, ReasoningTags, reasoning_tags
from localrun.text.stop import StopStrings

PIECES = [b"<s>", b"a", "é".encode(), b"\xf0", b"\x9f\x99", b"\x82", b"\xff", b" b", b"\xc3", "天".encode()]
CUTS = st.lists(st.integers(1, 5), min_size=1, max_size=30)


def tokenizer() -> Any:
    return cast(
        Any,
        SimpleNamespace(piece=PIECES.__getitem__, control_ids=frozenset({0}), token_text=lambda i: PIECES[i].decode()),
    )


def cut(text: str, sizes: list[int]) -> list[str]:
    parts: list[str] = []
    while text:
        n = sizes[len(parts) % len(sizes)]
        parts.append(text[:n])
        text = text[n:]
    return parts


@given(st.lists(st.integers(0, len(PIECES) - 1)))
def test_streamed_text_is_the_text_of_all_bytes(ids: list[int]) -> None:
    """A character of several tokens is held back until it is whole (ik_llama.cpp#780, mlx-vlm#1147)."""
    stream = Detokenizer(tokenizer())
    pushed = "".join(stream.push(i) for i in ids) + stream.flush()
    assert pushed == b"".join(PIECES[i] for i in ids if i).decode("utf-8", "replace")


def test_a_mark_is_no_text_and_ends_a_character_that_is_incomplete() -> None:
    stream = Detokenizer(tokenizer(), Marks({0: "\ud800"}, {"<s>": "\ud800"}))
    assert [stream.push(3), stream.push(0), stream.push(1)] == ["", "\ufffd\ud800", "a"]


@given(st.text("abc", max_size=40), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3), CUTS)
def test_stop_strings_cut_where_the_first_of_them_is_complete(text: str, stops: list[str], sizes: list[int]) -> None:
    search = StopStrings(stops)
    shown, hit = "", False
    for part in cut(text, sizes):
        piece, hit = search.push(part)
        shown += piece
        if hit:
            break
    if not hit:
        shown += search.flush()
    matches = [(end, end - len(stop)) for end in range(len(text) + 1) for stop in stops if text[:end].endswith(stop)]
    assert hit == bool(matches)
    assert shown == (text[: min(matches)[1]] if matches else text)
    assert search.found == (text[min(matches)[1] : min(matches)[0]] if matches else "")


@given(st.text("ab", max_size=30), st.text("ab", min_size=2, max_size=4), CUTS)
def test_only_the_beginning_of_a_stop_string_is_held_back(text: str, stop: str, sizes: list[int]) -> None:
    search = StopStrings([stop])
    shown, fed = "", ""
    for part in cut(text, sizes):
        piece, hit = search.push(part)
        shown, fed = shown + piece, fed + part
        if hit:
            return
        assert stop.startswith(fed[len(shown) :])


@given(st.lists(st.sampled_from(["<t>", "</t>", "<h>", "x", "<", "\n", "/t>", "y"]), max_size=25), CUTS, st.booleans())
def test_channels_are_those_of_the_whole_text(parts: list[str], sizes: list[int], inside: bool) -> None:
    text = "".join(parts)
    whole: dict[str, str] = {"answer": "", "thinking": ""}
    rest, channel, fresh = text, "thinking" if inside else "answer", inside
    while rest:
        tags = "</t>" if channel == "thinking" else "<t>|<h>"
        match = re.search(tags, rest)
        before = rest[: match.start()] if match else rest
        whole[channel] += re.sub(r"^[\r\n]+", "", before) if fresh else before
        fresh = bool(match) or (fresh and not before.strip("\r\n"))
        if match:
            channel = "thinking" if match[0] == "<t>" else "answer"
        rest = rest[match.end() :] if match else ""
    splitter = ReasoningSplitter("<t>", "</t>", starts_inside=inside, hidden=("<h>",))
    pieces = [piece for part in cut(text, sizes) for piece in splitter.push(part)] + splitter.flush()
    got: dict[str, str] = {"answer": "", "thinking": ""}
    for name, piece in pieces:
        assert piece
        got[name] += piece
    assert got == whole


@pytest.mark.parametrize(("mark", "tags"), KNOWN_TAGS, ids=[tags.open.strip() for _, tags in KNOWN_TAGS])
def test_a_template_tells_its_tags(mark: str, tags: ReasoningTags) -> None:
    assert reasoning_tags(f"{{{{ messages[0].content }}}}{mark}") == tags


def test_a_template_without_tags_does_not_think_aloud() -> None:
    assert reasoning_tags("{{ message.content }}") is None

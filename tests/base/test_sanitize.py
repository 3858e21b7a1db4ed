"""Nothing that comes out of the sanitizer steers a terminal, however the stream was cut."""

import itertools
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.base.sanitize import Cleaner, clean

FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff]")
PIECES = [
    *map(chr, range(256)),
    *("\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x1b(B", "\x1b[31m", "\x1b]0;title\x07", "\x1b]52;c;aGk=\x1b\\"),
    *(
        "\x9b2J",
        "\x9d8;;http://x\x9c",
        "\x90q\x9c",
        "\u202e",
        "\u2066",
        "\U000e0041",
        "\ud800",
        "é",
        "字",
        "🦀",
        "abc ",
    ),
]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text, ünïcode, 字, 🏳️‍🌈\n\tindented", "plain text, ünïcode, 字, 🏳️‍🌈\n\tindented"),
        ("a\x1b[31mred\x1b[0m b", "ared b"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9d52;c;aGVsbG8=\x9cdone", "done"),
        ("\x9b2Jgone\x9bm", "gone"),
        ("\x1b[1;2\x1b[3mx", "x"),
        ("\x1bPq#1;2;\x1b\\image", "image"),
        ("a\r\nb\x08\x00\x7f", "a\nb"),
        ("\x1b(0line\x1bcreset\x1b#8", "linereset"),
        ("abc\u202edcba", "abc<U+202E>dcba"),
        ("half\ud83d", "half\ufffd"),
        ("hid\U000e0041den", "hid<U+E0041>den"),
        ("\x1b]never closed\nnext line", "\nnext line"),
        ("end\x1b", "end"),
        ("", ""),
    ],
)
def test_known_sequences(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_a_control_string_without_end_cannot_swallow_an_answer() -> None:
    assert clean("\x1b]" + "x" * 5000 + " the answer").endswith(" the answer")


def test_one_line_stays_one_line() -> None:
    assert clean("a\nb\tc\r\u2028d", keep_newlines=False) == "a b c d"


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=12), st.data())
def test_streaming_equals_the_whole_and_both_are_clean(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    check(text, cuts)


@given(st.text())
def test_clean_text_is_unchanged(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@pytest.mark.slow
def test_100_000_random_streams() -> None:
    rng = random.Random(20)
    for _ in range(100_000):
        text = "".join(rng.choices(PIECES, k=rng.randrange(20)))
        check(text, sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(4))))


def check(text: str, cuts: list[int]) -> None:
    cleaner = Cleaner()
    edges = [0, *cuts, len(text)]
    streamed = "".join(cleaner.feed(text[a:b]) for a, b in itertools.pairwise(edges))
    assert streamed == clean(text)
    assert not FORBIDDEN.search(streamed)
    assert not re.search("[\n\t\u2028\u2029]", clean(text, keep_newlines=False))

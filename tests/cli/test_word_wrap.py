"""Lines of an answer on a terminal are broken between words, and nothing else changes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from localrun.cli.console import definitions, note
from localrun.cli.word_wrap import WordWrap

TEXTS = st.text(st.sampled_from("ab 语\n\t|`"), max_size=60)


def wrapped(chunks: list[str], width: int) -> str:
    wrap = WordWrap(lambda: width)
    return "".join(map(wrap.feed, chunks)) + wrap.flush()


@given(TEXTS, st.integers(1, 20), st.lists(st.integers(0, 60), max_size=5))
def test_words_stay_whole_wherever_the_stream_is_cut(text: str, width: int, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    chunks = [text[start:end] for start, end in itertools.pairwise(places)]
    shown = wrapped(chunks, width)
    assert shown == wrapped([text], width)
    assert shown.split() == text.split()
    for line in shown.split("\n"):
        assert "|" in line or "`" in line or len(line.split()) < 2 or cell_len(line.rstrip()) <= width or "\t" in line


def test_code_and_tables_stay_as_they_are() -> None:
    code = "```python\nx = 1  # a long line of code\n```\n"
    table = "| a | long row of a table |\n"
    assert wrapped([code, table, "one two three"], 9) == code + table + "one two\nthree"
    assert wrapped(["a  b\n\n  indented\n"], 40) == "a  b\n\n  indented\n"


def test_notes_on_a_terminal_are_broken_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    line = "(8 tokens, 363 tok/s; never seen before)"
    note(line)
    monkeypatch.setattr("localrun.cli.console.is_terminal", lambda stream: True)
    note(line)
    whole, *broken = capsys.readouterr().err.splitlines()
    assert whole == " ".join(broken) == line
    assert max(map(len, broken)) <= 20


def test_what_a_term_means_stands_beside_it_and_below_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    rows = [("/pin", "to the top of the list of chats"), ("/set NAME VALUE|NAME ONLY", "as in --max-tokens 5")]
    assert definitions(rows) == [
        "/pin                    to the top of the list of",
        "                        chats",
        "/set NAME VALUE|NAME ONLY",
        "                        as in --max-tokens 5",
    ]

"""What a person types in plain chat becomes messages."""

import builtins
from collections.abc import Sequence

import pytest

from localrun.cli.line import input as line_input
from localrun.cli.line.input import typed_messages


@pytest.mark.parametrize(
    ("lines", "messages"),
    [
        (["one", " ", "two "], ["one", "two"]),
        (["a list: \\", "first"], ["a list: \nfirst"]),
        (['"""', "first", "", "  second", '"""', "third"], ["first\n\n  second", "third"]),
        (['"""all on one line"""', "next"], ["all on one line", "next"]),
        (['"""a path \\', 'C:\\"""'], ["a path \\\nC:\\"]),
        (['""" never closed'], []),
    ],
)
def test_lines_become_messages(lines: Sequence[str], messages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(lines)

    def ask(prompt: str = "") -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(builtins, "input", ask)
    monkeypatch.setattr(line_input, "tell", lambda text: None)
    assert list(typed_messages()) == messages

"""When `localrun` alone is the app: for a person at a terminal that can draw, and for nobody else."""

import sys
from types import SimpleNamespace

import pytest

from localrun.base.errors import UsageError
from localrun.cli.groups import ModelOptions
from localrun.cli.open_app import begins_app, is_plain
from localrun.cli.tui import tui


def terminals(monkeypatch: pytest.MonkeyPatch, stdin: bool, stdout: bool, stderr: bool = True) -> None:
    for name, answer in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
        monkeypatch.setattr(sys, name, SimpleNamespace(isatty=lambda answer=answer: answer, closed=False))


@pytest.mark.parametrize(
    ("arguments", "stdin", "stdout", "term", "begins"),
    [
        ([], True, True, "xterm-256color", True),
        (["list"], True, True, "xterm-256color", False),
        ([], False, True, "xterm-256color", False),
        ([], True, False, "xterm-256color", False),
        ([], True, True, "dumb", False),
        ([], True, True, "", False),
    ],
)
def test_the_app_is_for_a_person_at_a_terminal(
    arguments: list[str], stdin: bool, stdout: bool, term: str, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.name", "posix")
    monkeypatch.setenv("TERM", term)
    terminals(monkeypatch, stdin, stdout)
    assert begins_app(arguments) is begins


def test_plain_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminals(monkeypatch, True, True)
    assert not is_plain()
    monkeypatch.setenv("LOCALRUN_PLAIN", "1")
    assert is_plain()


def test_an_app_whose_drawing_would_go_into_a_file_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminals(monkeypatch, True, True, stderr=False)
    assert not begins_app([])


def test_the_command_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminals(monkeypatch, True, True)
    with pytest.raises(UsageError, match="two models"):
        tui("a", model=ModelOptions(model="b"))
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(UsageError, match="plain lines only"):
        tui(None, model=ModelOptions())
    terminals(monkeypatch, True, False)
    with pytest.raises(UsageError, match="needs a terminal"):
        tui(None, model=ModelOptions())

"""Command lines run in this process, with a client that stands in for an engine."""

import io
import sys
from collections.abc import Callable, Iterator

import pytest

from localrun.base.request import LoadOptions, Request
from localrun.cli.app import run_command_line
from localrun_testing.fake_client import FakeClient

Answer = Callable[[Request], str]


class Faces:
    """Runs command lines in this process, and knows the clients they opened."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.clients: list[FakeClient] = []
        self.answer: Answer = lambda request: f"You said {request.messages[-1]['content']}."

    def open(self, options: LoadOptions, progress: object = None) -> FakeClient:
        self.clients.append(FakeClient(options, lambda request: self.answer(request)))
        return self.clients[-1]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        code = run_command_line(list(arguments))
        return code, *self._capsys.readouterr()

    @property
    def request(self) -> Request:
        return self.clients[-1].requests[-1]


def script(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    """Let stdin be a pipe with this text in it."""
    raw = io.BytesIO(text.encode() if isinstance(text, str) else text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(raw, encoding="utf-8"))


def type_in(monkeypatch: pytest.MonkeyPatch, *lines: str, typed: Iterator[str] | None = None) -> None:
    """Let a person type these lines at a terminal, or those of `typed`, each as it is asked for; then Ctrl-D."""
    typed = typed or iter(lines)

    def read(prompt: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("localrun.cli.line.input.ask_line", read)
    monkeypatch.setattr("localrun.cli.line.chat.ask_line", read)
    monkeypatch.setattr("localrun.cli.chat.is_terminal", lambda stream: stream is sys.stdin)

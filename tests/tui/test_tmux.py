"""The real thing: `localrun` in tmux, with the built-in model in a process of its own."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from localrun_testing.terminal import Terminal

from localrun.hub.catalogue import BUILTIN, read_catalogue

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux: not this OS (windows)"),
]


@pytest.fixture
def terminal(tmp_path: Path, home: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path, tmp_path, {**os.environ, "LOCALRUN_HOME": str(home)}, size=(100, 30))
    yield terminal
    terminal.close()


def begin_with_the_builtin_model(terminal: Terminal) -> None:
    terminal.see("to download; the small model answers")  # "Get …" goes first by now
    terminal.press("Enter", "⏎ Choose")


def test_a_newcomer_starts_chats_branches_leaves_and_finds_it_again(terminal: Terminal) -> None:
    terminal.start()
    terminal.see("Welcome to localrun")
    terminal.see(read_catalogue()[BUILTIN]["note"][:20])
    begin_with_the_builtin_model(terminal)
    terminal.see("builtin Q")
    terminal.type("Hello!")
    terminal.press("Enter", "⏎ Send")
    terminal.see("tok/s")
    terminal.press("C-r")
    terminal.see("‹ 2/2 ›")
    terminal.press("C-g", "^g Inspector")
    terminal.see("KV cache")
    terminal.press("C-q", "^q Quit")
    terminal.until_ended()

    terminal.start()
    terminal.see("Ask anything.")
    terminal.see("builtin Q")  # the model last used
    terminal.press("C-l", "^l Chats")
    terminal.press("/", "/ Find")
    terminal.see("⏎ Open the first")
    terminal.type("hello")
    terminal.see("1 found")
    terminal.press("Enter")
    terminal.see("/2 ›")  # the answer that says hello, of the two


def test_a_paste_arrives_once_with_its_lines_and_before_what_is_typed_after_it(terminal: Terminal) -> None:
    terminal.start()
    terminal.see("Welcome to localrun")
    begin_with_the_builtin_model(terminal)
    terminal.see("builtin Q")
    terminal.paste("first line\nsecond")
    terminal.type(" line")
    terminal.press("C-j")
    terminal.type("third")
    terminal.press("M-Enter")
    terminal.type("fourth")
    terminal.see("fourth")
    typed = [line.strip(" ▌│") for line in terminal.text().splitlines()]
    start = next(number for number, line in enumerate(typed) if "first line" in line)
    assert [line.rstrip() for line in typed[start : start + 4]] == ["first line", "second line", "third", "fourth"]
    assert terminal.text().count("first line") == 1


def test_everything_is_redrawn_after_an_unexpected_stop(terminal: Terminal) -> None:
    terminal.start()
    terminal.see("Welcome to localrun")
    begin_with_the_builtin_model(terminal)
    terminal.see("builtin Q")
    terminal.see("all keys")
    before = terminal.text()
    terminal.stop_and_go_on()
    terminal.until(lambda: terminal.text() == before, "not all of it is there again")
    terminal.paste("one line\nanother")
    terminal.see("another")
    terminal.press("C-q")
    terminal.until_ended()

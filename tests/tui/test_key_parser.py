"""What terminals without a keyboard protocol send: Alt with a key, sequences that are no key, pastes."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterable

import pytest
from localrun_testing.chat_app import chat_app
from localrun_testing.waiting import until
from textual import _parser, events
from textual.message import Message

from localrun_tui.key_parser import KeyParser

LATER = 1.0  # seconds, more than any terminal takes between the bytes of one key

SENT = {
    "alt+enter in one read": (["one\x1b\rtwo"], ["o", "n", "e", "alt+enter", "t", "w", "o"]),
    "alt+enter in two": (["a\x1b", "\rb"], ["a", "alt+enter", "b"]),
    "escape, and enter later": (["\x1b", LATER, "\r"], ["escape", "enter"]),
    "twice, with text around": (["\x1b\rx\x1b\r\x1b\r"], ["alt+enter", "x", "alt+enter", "alt+enter"]),
    "keyboard protocols": (["\x1b[13;3u\x1b[27;3;13~\x1b[13;2u"], ["alt+enter", "alt+enter", "shift+enter"]),
    "escape before it": (["\x1b\x1b\r"], ["escape", "alt+enter"]),
    "alt with letters": (["\x1bx\x1bX\x1bO", LATER], ["alt+x", "alt+shift+x", "alt+shift+o"]),
    "alt with signs": (["\x1b,\x1b \x1bé"], ["alt+comma", "alt+space", "alt+é"]),
    "alt with arrows": (["\x1b[1;3A\x1b\x7f\x1bb"], ["alt+up", "ctrl+w", "ctrl+left"]),
    "alt with a bracket": (["\x1b[", LATER, "x"], ["left_square_bracket", "x"]),
    "keys of control": (["\x1b\x03\x1b\n"], ["ctrl+c", "ctrl+j"]),
    "a sequence that is no key": (["a\x1b[9;9;9;9$zb"], ["a", "b"]),
    "half a sequence": (["\x1b[1", LATER, "\x1b[1\x1bx"], ["left_square_bracket", "1"] * 2 + ["alt+x"]),
    "the old mouse": (["\x1b[M", "a!!b"], ["b"]),
    "a mode": (["\x1b[?2026;2$y"], ["TerminalSupportsSynchronizedOutput"]),
    "f5": (["\x1b[1", "5~a"], ["f5", "a"]),
    "a paste": (["\x1b[200~a\rb\x1b[201~\x1b\r"], ["paste 'a\\nb'", "alt+enter"]),
    "a paste with colours": (["\x1b[200~\x1b[31mred\x1b[0m\x1b", "[201~z"], ["paste 'red'", "z"]),
    "a paste in pieces": (["a\x1b[2", "00~b\x1b", "[1mc", LATER, "\x1b[20", "1~d"], ["a", "paste 'bc'", "d"]),
    "a mark in pieces": (["\x1b", "[2", LATER, "00~b\rc\x1b[2", LATER, "01~"], ["paste 'b\\nc'"]),
    "escape before a paste": (["\x1b", "\x1b[200~a\x1b[201~b"], ["escape", "paste 'a'", "b"]),
    "two pastes": (["\x1b[200~a\x1b[201~\x1b[200~b\x1b[201~"], ["paste 'a'", "paste 'b'"]),
}


def told(message: Message) -> str:
    match message:
        case events.Key():
            return message.key
        case events.Paste():
            return f"paste {message.text!r}"
    return type(message).__name__


@pytest.mark.parametrize(("chunks", "wanted"), SENT.values(), ids=SENT)
def test_what_was_pressed(chunks: list[str | float], wanted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(_parser, "get_time", lambda: now)
    parser = KeyParser()
    messages: list[Message] = []
    for chunk in [*chunks, LATER]:
        if isinstance(chunk, str):
            messages += parser.feed(chunk)
        else:
            now += chunk
            messages += parser.tick()
    assert [told(message) for message in messages] == wanted


@pytest.mark.parametrize("between", ["a", "\r", "[", "O", "é", "\x1b", "[1;", "]0;", "P"])
def test_escape_is_never_text(between: str) -> None:
    """However much is read at once, and wherever a read ends."""
    sent = f"\x1b{between}" + "the rest of a line that is long enough" * 2
    for cut in range(1, 40):
        parser = KeyParser()
        messages = [*parser.feed(sent[:cut]), *parser.feed(sent[cut:]), *parser.feed("")]
        assert not any(
            isinstance(one, events.Key) and one.character in ("^", "\x1b") and one.key != "escape" for one in messages
        )
        typed = "".join(one.character or "" for one in messages if isinstance(one, events.Key))
        assert typed.endswith("a line that is long enough")


def test_a_paste_is_the_same_wherever_a_read_ends() -> None:
    sent = "a\x1b[200~b\x1b[20\x1b[1m\rc\x1b[201~d\x1b[200~\x1b[201~e"
    whole = [told(message) for message in KeyParser().feed(sent)]
    assert whole == ["a", "paste 'b\\nc'", "d", "paste ''", "e"]
    for first in range(1, len(sent) - 1):
        for second in range(first + 1, len(sent)):
            parser = KeyParser()
            messages = [*parser.feed(sent[:first]), *parser.feed(sent[first:second]), *parser.feed(sent[second:])]
            assert [told(message) for message in messages] == whole


def test_a_paste_is_not_read_character_by_character(monkeypatch: pytest.MonkeyPatch) -> None:
    """Megabytes would take half a minute without a sign."""
    read: list[str] = []
    feed = _parser.Parser[Message].feed

    def count(parser: KeyParser, data: str) -> Iterable[Message]:
        read.append(data)
        return feed(parser, data)

    monkeypatch.setattr(_parser.Parser, "feed", count)
    parser = KeyParser()
    pieces = ["\x1b[200~", *["a line\r" * 500] * 100, "\x1b[201~"]
    messages = [message for piece in pieces for message in parser.feed(piece)]
    assert [message.text for message in messages if isinstance(message, events.Paste)] == ["a line\n" * 50_000]
    assert len("".join(read)) < 100


@pytest.mark.skipif(sys.platform == "win32", reason="no such driver on Windows")
def test_the_app_reads_keys_so() -> None:
    """With the thread that reads the terminal."""
    from localrun_tui.terminal import Terminal

    messages: list[Message] = []

    class Reader(Terminal):
        def process_message(self, message: Message) -> None:
            messages.append(message)

    def keys() -> list[str]:
        return [told(message) for message in messages]

    async def read_keys() -> None:
        read, write = os.pipe()
        driver = Reader(chat_app()[0])
        driver.fileno = read
        thread = threading.Thread(target=driver.run_input_thread)
        thread.start()
        try:
            os.write(write, b"one\x1b\rtwo")
            until(lambda: keys() == [*"one", "alt+enter", *"two"], keys)
            os.write(write, b"\x1b")
            until(lambda: keys()[-1] == "escape", keys)
        finally:
            driver.exit_event.set()
            thread.join()
            os.close(read)
            os.close(write)

    asyncio.run(read_keys())

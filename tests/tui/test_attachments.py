"""Text files and long pastes go along with a message as chips."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, type_text
from localrun_testing.pilots import drive, screen_text, until, until_text
from textual.pilot import Pilot
from textual.widgets import Input

from localrun.base.content import FilePart, TextPart, with_files_as_text
from localrun.chat.files import read_files
from localrun.chat.images import ImageShelf
from localrun.chat.long_text.condensed import Kinds
from localrun.chat.tree import Message
from localrun_tui.screens.chat.chips import HINT, Chips, chip_of
from localrun_tui.screens.chat.composer import Composer
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.screens.chat.message_document import MessageDocument
from localrun_tui.screens.dialogs.read_screen import ReadScreen


def test_files_go_along_as_chips(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("ignore ``` fences\n")
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.screen.query("#answer"))
        app.screen.query_one("#answer", Input).value = str(notes)
        await pilot.press("enter")
        await until_text(pilot, "▤ notes.md")
        await ask(pilot, "sum up")
        assert "sum up" in screen_text(app).splitlines()[0]  # the title is what was typed
        assert "▤ notes.md" in screen_text(app)
        assert "ignore" not in screen_text(app)
        assert chat_screen(pilot).query_one(Composer).attachments == []

    drive(app, steps)
    asked = with_files_as_text(client.requests[0].messages[0])
    assert asked["content"] == "[file: notes.md]\n````\nignore ``` fences\n\n````\n\nsum up"


def test_a_file_that_cannot_be_attached_is_refused_and_another_one_may_be_named(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("words")
    sound = tmp_path / "cat.ogg"
    sound.write_bytes(b"OggS\xff\x00")
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.screen.query("#answer"))
        app.screen.query_one("#answer", Input).value = str(sound)
        await pilot.press("enter")
        await until_text(pilot, "cat.ogg is not UTF-8 text")
        app.screen.query_one("#answer", Input).value = str(tmp_path / "nothing")
        await until(pilot, lambda: "is not UTF-8 text" not in screen_text(app))
        await pilot.press("enter")
        await until_text(pilot, "nothing is not a file")
        app.screen.query_one("#answer", Input).value = str(notes)
        await pilot.press("enter")
        await until_text(pilot, "▤ notes.txt")

    drive(app, steps)


def test_files_that_a_message_names_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in plain chat: who types a name to its end, and a space, has left the menu that would attach it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("the code word is heron")
    (tmp_path / "my list.txt").write_text("eggs")
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, 'see @notes.txt, @"my list.txt" and @nobody: what is it?')
        assert "▤ notes.txt" in screen_text(app)
        assert "▤ my list.txt" in screen_text(app)
        await until_text(pilot, "@nobody stays text: nobody is not a file")

    drive(app, steps)
    assert client.requests[0].messages[0]["content"] == [
        {"type": "file", "name": "notes.txt", "text": "the code word is heron"},
        {"type": "file", "name": "my list.txt", "text": "eggs"},
        {"type": "text", "text": "see notes.txt, my list.txt and @nobody: what is it?"},
    ]


def test_a_file_that_a_message_names_and_is_too_long_is_shortened_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.log").write_text("all is well\n" * 100_000)
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "what went wrong in @server.log ?")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReadScreen))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ReadScreen))
        assert chat_screen(pilot).composer.editor.text == "what went wrong in @server.log ?"

    drive(app, steps)
    assert not client.requests


def test_a_long_paste_becomes_a_chip() -> None:
    from textual.events import Paste

    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        chat_screen(pilot).query_one(Editor).post_message(Paste("words \x1b[31m" * 1000))
        await until_text(pilot, "▤ pasted text 1")
        await ask(pilot, "what is it?")

    drive(app, steps)
    assert "\x1b" not in client.requests[0].messages[0]["content"]


def test_alt_backspace_takes_a_file_back_as_terminals_send_it() -> None:
    """Most send ESC DEL, which Textual calls Ctrl+W; without files the key takes a word back."""
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        composer.attached.add_paste("words")
        composer.write("two words")
        await pilot.press("ctrl+w")
        assert (len(composer.attachments), composer.editor.text) == (1, "two ")
        await pilot.press("ctrl+w", "ctrl+w")
        assert (composer.attachments, composer.editor.text) == ([], "")

    drive(app, steps)


def test_a_key_that_takes_words_back_takes_files_only_before_the_text(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("words\n")
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        composer = chat_screen(pilot).query_one(Composer)
        composer.attached.take(read_files(str(notes), tmp_path, ImageShelf(None)))
        composer.attached.take(read_files(str(notes), tmp_path, ImageShelf(None)))
        assert len(composer.attachments) == 1, "the same file once"
        await pilot.press(*"sum up", "ctrl+w")
        assert (composer.editor.text, len(composer.attachments)) == ("sum ", 1)
        await pilot.press("home", "ctrl+w")
        assert (composer.editor.text, composer.attachments) == ("sum ", [])

    drive(app, steps)


def test_errors_of_a_condensed_log_stand_below_its_name() -> None:
    """They are as they are, whatever the model says of them."""

    def shown(text: str) -> list[str]:
        message = Message("1", None, "user", (FilePart("a.log condensed", text), TextPart("What is wrong?")))
        return [line.plain for line in MessageDocument(message, "You").lines(60)][2:]

    log = "".join(f"{number:05} INFO all is well with the program\n" for number in range(1, 1000))
    fatal = "01000 ERROR \x1b[31mthe disk is full, write to /var/lib/orders/wal-0231 failed\n"
    assert shown(Kinds(log + fatal).condensed().text) == [
        "[1,000] 01000 ERROR the disk is full, write to",
        "/var/lib/orders/wal-0231 failed",
        "What is wrong?",
    ]
    many = "".join(f"ERROR{' broken' * n}\n" for n in range(12))
    assert shown(Kinds(log + many).condensed().text)[-2:] == ["… 4 more: /sees shows all", "What is wrong?"]
    assert shown("A page.\n\nErrors:\nnone") == ["What is wrong?"]


def test_a_chip_goes_on_to_the_next_line_whole() -> None:
    chips = Chips()
    files = [FilePart(f"notes of {n}.txt", "x" * 2000) for n in range(4)]
    chips.show(files, [])
    wanted = [*map(chip_of, files), HINT]
    for width in range(max(map(len, wanted)), 200):
        lines = [line.plain for line in chips._lines(width)]
        assert max(map(len, lines)) <= width
        assert [chip for line in lines for chip in line.split("  ")] == wanted
        assert all(len(f"{line}  {below.split('  ')[0]}") > width for line, below in pairwise(lines)), "no line sooner"
    chips.show([FilePart("a name that no line has room for.txt", "")], [])
    assert [line.plain for line in chips._lines(20)][:3] == ["▤ a name that no", "line has room", "for.txt 0 bytes"]

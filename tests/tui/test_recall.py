"""Earlier prompts come back by ↑, and a message may be written in another editor."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, sources, type_text
from localrun_testing.pilots import drive, until
from textual.pilot import Pilot

from localrun.base.content import as_content, text_of
from localrun.base.errors import UsageError
from localrun.chat.journal import ChatStore
from localrun_tui import app as app_module
from localrun_tui.state.external_editor import edit_outside, editor_command
from localrun_tui.state.recall import Recall

PROMPTS = [as_content(text) for text in ("one", "two", "one", " ", "three")]


def test_prompts_are_walked_from_the_newest_on_and_back() -> None:
    recall, typed, seen = Recall(), as_content(""), []
    for back in (1, 1, 1, 1, -1, -1, -1, -1):
        shown = recall.step(back, typed, PROMPTS)
        seen.append(shown and text_of(shown))
        typed = typed if shown is None else shown
    assert seen == ["three", "one", "two", "two", "one", "three", "", None]


def test_what_was_typed_or_changed_is_not_taken_away() -> None:
    recall = Recall()
    assert recall.step(1, as_content("a draft"), PROMPTS) is None
    assert recall.step(-1, as_content(""), PROMPTS) is None
    assert recall.step(1, as_content(""), PROMPTS) == as_content("three")
    assert recall.step(1, as_content("three, changed"), PROMPTS) is None
    assert recall.step(1, as_content(""), []) is None


def test_the_arrow_recalls_in_an_empty_editor_only() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        editor = chat_screen(pilot).composer.editor
        await ready(pilot)
        for text in ("first", "second"):
            await ask(pilot, text)
        await pilot.press("up")
        assert editor.text == "second"
        await pilot.press("up", "up")
        assert editor.text == "first"
        await pilot.press("down", "down")
        assert editor.text == ""
        await type_text(pilot, "mine")
        await pilot.press("up")
        assert editor.text == "mine"
        assert not editor.has_focus  # up to the messages, as ever

    drive(app, steps)


def test_prompts_of_the_chats_before_a_restart_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "_QUIET", 0.01)
    store = ChatStore(tmp_path)
    for text in ("older", "newer"):
        store.create().add_user(text)
    store.close()
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        editor = chat_screen(pilot).composer.editor
        await ready(pilot)
        await until(pilot, lambda: app.session.prompts)
        await ask(pilot, "now")
        recalled = []
        for _ in range(3):
            await pilot.press("up")
            recalled.append(editor.text)
        assert recalled == ["now", "newer", "older"]

    drive(app, steps)


def test_prompts_of_other_chats_come_after_those_of_this_one() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        editor = chat_screen(pilot).composer.editor
        await ready(pilot)
        await ask(pilot, "elsewhere")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: not sources(pilot))
        await ask(pilot, "here")
        await pilot.press("up")
        assert editor.text == "here"
        await pilot.press("up")
        assert editor.text == "elsewhere"

    drive(app, steps)


def script(folder: Path, lines: str) -> list[str]:
    path = folder / "editor.py"
    path.write_text(f"import sys\nfrom pathlib import Path\npath = Path(sys.argv[1])\n{lines}")
    return [sys.executable, str(path)]


def test_an_editor_gets_the_text_and_gives_it_back(tmp_path: Path) -> None:
    append = script(tmp_path, "path.write_text(path.read_text() + ' and more\\n')")
    assert edit_outside("words", append) == "words and more"
    with pytest.raises(UsageError, match="ended with 3"):
        edit_outside("words", script(tmp_path, "sys.exit(3)"))
    with pytest.raises(UsageError, match="did not work"):
        edit_outside("words", [str(tmp_path / "no such")])


def test_which_editor_is_taken() -> None:
    assert editor_command({"VISUAL": "code -w", "EDITOR": "vi"}) == ["code", "-w"]
    assert editor_command({"EDITOR": "vi"}) == ["vi"]
    for environ in ({}, {"EDITOR": ""}, {"EDITOR": "vi 'x"}):
        with pytest.raises(UsageError):
            editor_command(environ)


def test_a_key_opens_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = script(tmp_path, "path.write_text(path.read_text() + ' more')")
    app, _ = chat_app()
    monkeypatch.setattr(app, "suspend", contextmanager(lambda: iter([None])))

    async def steps(pilot: Pilot[Any]) -> None:
        editor = chat_screen(pilot).composer.editor
        await ready(pilot)
        await type_text(pilot, "words")
        monkeypatch.setenv("VISUAL", "")
        monkeypatch.setenv("EDITOR", "")
        await pilot.press("f4")
        await until(pilot, lambda: "no editor is set" in notice(pilot))
        monkeypatch.setenv("EDITOR", " ".join(command) if os.name != "nt" else f'"{command[0]}" "{command[1]}"')
        await pilot.press("f4")
        assert editor.text == "words more"

    drive(app, steps)

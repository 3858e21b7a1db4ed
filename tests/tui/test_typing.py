"""What is typed and pasted arrives once, whole and in order, in every field."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, send, type_text
from localrun_testing.idle import patient_pilot
from localrun_testing.pilots import LARGE, SMALL, burst, drive, page_down_to, screen_text, until, until_text
from localrun_testing.scripted_client import Script
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from localrun.base.content import with_files_as_text
from localrun.chat.conversation import Chat
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.state.store_thread import StoreThread
from localrun_tui.widgets.fields import LineField, TextField


async def paste(pilot: Pilot[Any], text: str) -> None:
    """As the terminal hands a bracketed paste to the app."""
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()


def editor(pilot: Pilot[Any]) -> Editor:
    return chat_screen(pilot).query_one(Editor)


def test_what_is_typed_before_there_is_an_editor_is_not_lost() -> None:
    app, _ = chat_app()

    async def run() -> None:
        for key in "hi":
            app.post_message(events.Key(key, key))
        app.post_message(events.Paste(" there"))
        with patient_pilot(app):
            async with app.run_test() as pilot:
                await pilot.pause()
                await until(pilot, lambda: editor(pilot).text == "hi there")

    asyncio.run(run())


class Fields(App[None]):
    def compose(self) -> ComposeResult:
        yield TextField(id="text")
        yield LineField(id="line")


@pytest.mark.parametrize(
    ("sent", "text", "line"),
    [
        ("hi there", "hi there", "hi there"),
        ("aa\rbb", "aa\nbb", "aa bb"),
        ("aa\r\nbb\r\n\r\ncc", "aa\nbb\n\ncc", "aa bb  cc"),
        ("key-1234\n", "key-1234\n", "key-1234"),
        ("a\x1b[31mb\x07c\u202ed", "abc<U+202E>d", "abc<U+202E>d"),
        ("\r", "\n", ""),
    ],
)
def test_a_paste_arrives_once_and_with_its_lines(sent: str, text: str, line: str) -> None:
    app = Fields()

    async def steps(pilot: Pilot[Any]) -> None:
        field = app.query_one(TextField)
        field.focus()
        await paste(pilot, sent)
        await until(pilot, lambda: field.text)
        assert field.text == text
        one = app.query_one(LineField)
        one.focus()
        await paste(pilot, sent)
        await until(pilot, lambda: one.value == line)

    drive(app, steps)


def test_pastes_reach_the_engine_as_they_were() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await paste(pilot, "hi there")
        assert editor(pilot).text == "hi there"
        await paste(pilot, "\raa\r\nbb")
        await ask(pilot, "")
        await paste(pilot, "long line\r" * 1000)
        await until_text(pilot, "▤ pasted text 1")
        assert editor(pilot).text == ""
        await ask(pilot, "what is it?")

    drive(app, steps)
    first, second = client.requests
    assert first.messages[-1]["content"] == "hi there\naa\nbb"
    assert "long line\n" * 1000 in with_files_as_text(second.messages[-1])["content"]


def test_keys_act_in_the_order_they_were_pressed() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await burst(pilot, "line 1\nline 2\nend")
        assert editor(pilot).text == "line 1\nline 2\nend"
        await burst(pilot, ["ctrl+u", *"abc", "left", "X", "backspace", "Y", "home", "Z"])
        assert editor(pilot).text == "ZabYc"
        await burst(pilot, ["ctrl+u", *"first", "enter", *"next"])
        assert editor(pilot).text == "next"
        await until_text(pilot, "Hello!")

    drive(app, steps)
    assert client.requests[0].messages[-1]["content"] == "first"


def test_letters_right_behind_the_key_that_edits_a_message_are_typed_into_it() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "first")
        await until_text(pilot, "Hello!")
        await pilot.press("ctrl+up", "up")
        await burst(pilot, "e and more")
        assert editor(pilot).text == "first and more"

    drive(app, steps)


def test_letters_right_behind_the_key_that_edits_a_waiting_message_are_typed_into_it() -> None:
    app, _ = chat_app(Script("Wait.", never_ends=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "first")
        await send(pilot, "second")
        await until(pilot, lambda: chat_screen(pilot).pane.waiting.option_count)
        await pilot.press("up")
        await burst(pilot, "e and more")
        assert editor(pilot).text == "second and more"

    drive(app, steps)


def test_a_long_paste_goes_with_the_enter_right_after_it() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        app.post_message(events.Paste("words " * 1000))
        await burst(pilot, ["w", "h", "y", "enter", "x"])
        await until_text(pilot, "Hello!")
        assert editor(pilot).text == "x"

    drive(app, steps)
    sent = with_files_as_text(client.requests[0].messages[-1])["content"]
    assert sent.startswith("[file: pasted text 1]")
    assert sent.endswith("why")


def test_alt_backspace_deletes_a_word_and_before_the_text_a_file() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await paste(pilot, "words " * 1000)
        await type_text(pilot, "two words")
        await pilot.press("alt+backspace")
        assert editor(pilot).text == "two "
        assert chat_screen(pilot).composer.attachments
        await pilot.press("home", "alt+backspace")
        assert not chat_screen(pilot).composer.attachments
        assert editor(pilot).text == "two "

    drive(app, steps)


def test_a_burst_of_keys_in_a_line_field(home: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.screen.query("#answer"))
        await burst(pilot, [*"abx", "backspace", *"c", "home", "X", "ctrl+k", "Y"])
        assert app.screen.query_one("#answer", LineField).value == "XY"

    drive(app, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_what_is_typed_with_the_inspector_open_stays_in_sight(size: tuple[int, int]) -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await burst(pilot, ["ctrl+g"])
        await until_text(pilot, "KV cache")
        await burst(pilot, "typed")
        await paste(pilot, " and pasted")
        await until_text(pilot, "typed and pasted")
        assert "KV cache" in screen_text(app)
        if size == SMALL:  # it lies below, and is longer than its place
            await pilot.press("tab")
            await until_text(pilot, "esc Back")
            await page_down_to(pilot, "whole process")
            await pilot.press("escape")
        await pilot.press("enter")
        await until_text(pilot, "Hello!")

    drive(app, steps, size)
    assert client.requests[0].messages[-1]["content"] == "typed and pasted"


def test_what_is_typed_behind_a_key_for_a_new_chat_goes_to_that_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    app, client = chat_app()
    create = StoreThread.create

    def create_late(disk: StoreThread, model: str) -> Chat:
        time.sleep(0.3)
        return create(disk, model)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "about the moon")
        monkeypatch.setattr(StoreThread, "create", create_late)
        await burst(pilot, ["ctrl+n", *"stars", "enter"])
        await until(pilot, lambda: len(client.requests) == 2)
        await burst(pilot, ["ctrl+n", *"/title Suns", "enter"])
        await until_text(pilot, "this chat has no messages yet")

    drive(app, steps)
    assert [message["content"] for message in client.requests[1].messages] == ["stars"]


def test_ctrl_z_takes_back_what_was_typed_and_then_suspends_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app()
    suspended: list[str] = []
    monkeypatch.setattr(app, "action_suspend_process", lambda: suspended.append("by a key"))

    async def steps(pilot: Pilot[Any]) -> None:
        editor = chat_screen(pilot).composer.editor
        await ready(pilot)
        await pilot.press(*"abc", "ctrl+z")
        assert (editor.text, suspended) == ("", [])
        await pilot.press("ctrl+z")
        assert len(suspended) == 1
        await pilot.press("ctrl+l", "slash", "ctrl+z")
        assert len(suspended) == 2

    drive(app, steps)

"""The list of chats: found again by what was said, opened, renamed, exported, deleted."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import CHOICE, ask, chat_app, chat_screen, notice, ready, sources, views
from localrun_testing.pilots import LARGE, burst, drive, screen_text, until, until_text
from localrun_testing.waiting import PATIENCE
from textual.pilot import Pilot
from textual.widgets import Input

from localrun.chat.journal import ChatStore
from localrun_tui.screens.chat.history_list import HistoryList


def filled(folder: Path) -> ChatStore:
    store = ChatStore(folder)
    for question, answer in (("plan a week in Lisbon", "Take tram 28."), ("why is the sky blue?", "It scatters.")):
        chat = store.create(model="qwen3-4b")
        chat.add_answer(chat.add_user(question).id, answer)
    store.close()
    return store


@pytest.mark.parametrize("turns", [0, 3, 40])
def test_a_chat_is_opened_where_the_words_were_said(tmp_path: Path, turns: int) -> None:
    """However far up, and on a branch that was left."""
    store = ChatStore(tmp_path)
    chat = store.create(model="qwen3-4b")
    first = chat.add_user("where do puffins sleep?")
    chat.add_answer(first.id, "At sea, most of the year. " * 12)
    for number in range(turns):
        chat.add_answer(chat.add_user(f"question {number}").id, f"answer {number}")
    chat.edit(first.id, "where do swifts sleep?")
    store.close()
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+l", "slash", *"puffins")
        await until_text(pilot, "1 found")
        await pilot.press("enter")
        await until(pilot, lambda: [view.source for view in views(pilot) if view.has_focus] == [first.text])
        await until_text(pilot, "‹ 1/2 ›")  # beside the message: it is in sight
        await until_text(pilot, "At sea, most of the year.")

    drive(app, steps, LARGE)


@pytest.mark.parametrize("key", ["ctrl+n", "ctrl+r"])
def test_a_new_chat_and_another_answer_are_not_behind_the_list(key: str, tmp_path: Path) -> None:
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "why is the sky blue?")
        await pilot.press("ctrl+l")
        assert chat_screen(pilot).panels.covering
        await pilot.press(key)
        await until(pilot, lambda: not chat_screen(pilot).panels.covering)

    drive(app, steps)


def test_find_open_rename_export_and_delete_by_keyboard(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    filled(tmp_path / "chats")
    app, _ = chat_app(folder=tmp_path / "chats")

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+l")
        await until_text(pilot, "plan a week in Lisbon")
        assert "2 messages" in screen_text(app)
        await pilot.press("slash", *"tram")
        await until_text(pilot, "1 found")
        assert "Take tram 28." in screen_text(app)  # the line that was found
        await pilot.press("enter")
        await until(pilot, lambda: sources(pilot) == ["plan a week in Lisbon", "Take tram 28."])

        await pilot.press("ctrl+l", "r")
        await until_text(pilot, "Title of this chat")
        app.screen.query_one(Input).value = "Holiday"
        await pilot.press("enter")
        await until_text(pilot, "● Holiday")
        await until_text(pilot, "◆ Holiday")  # in the first line

        for key, suffix in (("x", "md"), ("x", "json")):
            await pilot.press(key)
            await until_text(pilot, "Export this chat as")
            await pilot.press(*(["down"] if suffix == "json" else []), "enter")
            await until_text(pilot, "Write it to")
            await pilot.press("enter")
            await until(pilot, (tmp_path / f"holiday.{suffix}").exists)
        await pilot.press("x")
        await until_text(pilot, "Export this chat as")
        await pilot.press("enter")
        await until_text(pilot, "Write it to")
        await pilot.press("enter")
        await until(pilot, lambda: "exists already" in notice(pilot))

        await pilot.press("d")
        await until_text(pilot, "nothing with “tram”")
        assert views(pilot) == []  # the deleted chat is not shown any more
        await pilot.press("u")
        await until(pilot, lambda: sources(pilot) == ["plan a week in Lisbon", "Take tram 28."])
        await until_text(pilot, "1 found")
        await pilot.press("d")
        await until_text(pilot, "nothing with “tram”")

    drive(app, steps, LARGE)
    assert "Take tram 28." in (tmp_path / "holiday.md").read_text()
    assert json.loads((tmp_path / "holiday.json").read_text())["messages"][0]["content"] == "plan a week in Lisbon"
    assert [chat.title for chat in ChatStore(tmp_path / "chats").summaries()] == ["why is the sky blue?"]


def test_a_deleted_chat_comes_back_where_it_was_and_takes_no_place(tmp_path: Path) -> None:
    store = ChatStore(tmp_path)
    for question in ("first", "second", "third"):
        chat = store.create(model="qwen3-4b")
        chat.add_answer(chat.add_user(question).id, f"an answer to the {question}")
    store.close()
    app, _ = chat_app(folder=tmp_path)

    def highlighted() -> str:
        option = app.screen.query_one(HistoryList).options.highlighted_option
        return str(option.prompt) if option else ""

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+l")
        await until_text(pilot, "third")
        await pilot.press("enter", "ctrl+l", "down")
        await until(pilot, lambda: "second" in highlighted())
        await pilot.press("d")
        await until(pilot, lambda: "second" not in screen_text(app).replace("“second”", ""))
        assert "first" in highlighted()
        await pilot.press("u")
        await until_text(pilot, "“second” is back")
        assert sources(pilot) == ["third", "an answer to the third"], "the open chat stays"
        assert [chat.title for chat in ChatStore(tmp_path).summaries()] == ["third", "second", "first"]

    drive(app, steps, LARGE)


def test_the_open_chat_is_highlighted_while_nobody_is_in_the_list(tmp_path: Path) -> None:
    filled(tmp_path)
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        screen = chat_screen(pilot)
        options = screen.query_one(HistoryList).options
        await ready(pilot)
        await until_text(pilot, "why is the sky blue?")
        await ask(pilot, "a new one")
        chat = screen.session.chat
        assert chat is not None
        await until(pilot, lambda: options.highlighted_option and options.highlighted_option.id == chat.id)
        await pilot.press("ctrl+l", "down")
        assert options.highlighted_option is not None
        other = options.highlighted_option.id
        await screen.history.show()
        assert options.highlighted_option.id == other != chat.id, "whoever goes through the list stays where one is"

    drive(app, steps, (200, 50))


def test_where_it_is_narrow_a_panel_takes_the_place_of_the_messages(tmp_path: Path) -> None:
    filled(tmp_path)
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+l")
        await until_text(pilot, "why is the sky blue?")
        assert "see the KV cache" not in screen_text(app)
        assert "Ask anything. Enter sends." in screen_text(app)
        await pilot.press("ctrl+g")
        await until_text(pilot, "KV cache")
        assert "why is the sky blue?" not in screen_text(app)
        await pilot.press("escape")
        await until_text(pilot, "see the KV cache")
        await pilot.press("ctrl+l", "ctrl+l")
        assert not app.screen.query_one(HistoryList).display

    drive(app, steps)


def test_what_is_not_kept_is_said_at_once() -> None:
    app, _ = chat_app(folder=None)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+n")
        await until_text(pilot, "chats are not kept")

    drive(app, steps)


def test_a_chat_is_pinned_put_into_a_folder_and_copied(tmp_path: Path) -> None:
    filled(tmp_path)
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+l")
        await until_text(pilot, "Today")
        await pilot.press("down", "p")
        await until_text(pilot, "★ Pinned")
        assert screen_text(app).index("★ Pinned") < screen_text(app).index("Today")
        await pilot.press("f")
        await until_text(pilot, "A new folder")
        await pilot.press("up", "enter")
        await until_text(pilot, "Name of the folder")
        await pilot.press(*"Travel", "enter", "p")
        await until_text(pilot, "▪ Travel")
        await pilot.press("c")
        await until(pilot, lambda: sources(pilot) == ["plan a week in Lisbon", "Take tram 28."])
        await until_text(pilot, "plan a week in Lisbon (copy)")

    drive(app, steps, LARGE)
    chats = ChatStore(tmp_path).summaries()
    assert {(chat.title, chat.folder, chat.pinned) for chat in chats} == {
        ("plan a week in Lisbon (copy)", "Travel", False),
        ("plan a week in Lisbon", "Travel", False),
        ("why is the sky blue?", "", False),
    }


def test_the_open_chat_is_renamed_by_a_key(tmp_path: Path) -> None:
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "ahoy")
        await pilot.press("f2")
        await until_text(pilot, "Title of this chat")
        app.screen.query_one(Input).value = "Pirates"
        await pilot.press("enter")
        await until_text(pilot, "◆ Pirates")

    drive(app, steps)


def test_keys_wait_for_the_dialog_of_the_key_before_them(tmp_path: Path) -> None:
    filled(tmp_path)
    app, _ = chat_app(folder=tmp_path)
    disk_is_free = threading.Event()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+l")
        await until_text(pilot, "plan a week in Lisbon")
        disk = chat_screen(pilot).session.disk
        disk.submit(lambda: disk_is_free.wait(PATIENCE))
        await burst(pilot, ["r", "ctrl+u", "x", "d", "enter", "d"])
        disk_is_free.set()
        await until_text(pilot, "“xd” is deleted")
        assert app.screen is chat_screen(pilot)
        assert [one.title for one in ChatStore(tmp_path).summaries()] == ["plan a week in Lisbon"]

    drive(app, steps, LARGE)


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        (["ctrl+l", "enter"], "It scatters."),
        (["ctrl+l", "r"], "Title of this chat"),
        (["ctrl+s"], "System prompt"),
        (["ctrl+t"], "Attach"),
    ],
)
def test_keys_wait_for_what_the_disk_brings_though_a_model_begins_to_load(
    tmp_path: Path, keys: list[str], shown: str
) -> None:
    """As at the start, where the list of chats may come later than the load begins."""
    filled(tmp_path)
    disk_is_free, loads = threading.Event(), threading.Event()
    loads.set()
    app, _ = chat_app(folder=tmp_path, gate=loads)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        screen = chat_screen(pilot)
        disk, model = screen.session.disk, screen.session.model
        loads.clear()
        disk.submit(lambda: disk_is_free.wait(PATIENCE))
        await burst(pilot, [*keys, "z"])
        screen.run_guarded(screen.session.load(CHOICE))
        await until(pilot, lambda: model.loading)
        disk_is_free.set()
        await until_text(pilot, shown)
        assert screen.composer.editor.text == ("z" if keys[-1] == "enter" else "")
        loads.set()

    drive(app, steps, LARGE)

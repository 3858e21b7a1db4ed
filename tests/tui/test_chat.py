"""Talking: messages go out, and answers come in."""

import threading
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ENDS, ask, chat_app, chat_screen, ready, send, sources
from localrun_testing.pilots import drive, screen_text, until, until_text
from localrun_testing.scripted_client import COMPLETION, Script
from localrun_testing.waiting import PATIENCE
from textual.pilot import Pilot

from localrun.base.events import Prefill
from localrun.chat.journal import Chat, ChatStore
from localrun_tui import app as app_module
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.state import title_giver


def test_an_answer_streams_in_and_is_kept(tmp_path: Path) -> None:
    app, client = chat_app(Script("It is **12**.\n\n- one\n- two"), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "what is 3 * 4?")
        assert sources(pilot) == ["what is 3 * 4?", "It is **12**.\n\n- one\n- two"]
        assert "It is 12." in screen_text(app)
        assert "41.3 tok/s" in screen_text(app)
        assert " left" in screen_text(app)
        assert "-bound" not in screen_text(app), "that is for the inspector"

    drive(app, steps)
    (summary,) = ChatStore(tmp_path).summaries()
    chat = ChatStore(tmp_path).open(summary.id)
    asked, answer = chat.tree.path(chat.tree.head)
    assert (asked.text, answer.text, answer.interrupted) == ("what is 3 * 4?", "It is **12**.\n\n- one\n- two", False)
    assert answer.ids[-1] == len(answer.text) // 4 - (len(answer.text) % 4 == 0)
    assert client.closed


def test_the_next_message_hands_the_ids_so_far_to_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(title_giver, "IDLE", 3600.0)  # no title is asked for meanwhile
    app, client = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "one")
        await ask(pilot, "two")

    drive(app, steps)
    first, second = client.requests
    assert [m["content"] for m in second.messages] == ["one", "Hello!", "two"]
    assert first.known_ids == ()
    assert second.known_ids[-2:] == (0, 1)  # the tokens of Hello!
    assert len(second.known_ids) == (COMPLETION.prompt_tokens or 0) + 2
    assert first.now == second.now
    assert first.chat_id == second.chat_id != ""


def test_a_message_that_is_long_on_its_way_to_the_disk_is_told_of_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app()
    gate, add_user = threading.Event(), Chat.add_user

    def add_late(chat: Chat, *arguments: Any) -> Any:
        gate.wait(PATIENCE)
        return add_user(chat, *arguments)

    monkeypatch.setattr(Chat, "add_user", add_late)

    async def steps(pilot: Pilot[Any]) -> None:
        await send(pilot, "a long story")
        await until_text(pilot, "● sending")
        gate.set()
        await until_text(pilot, "Hello!")
        assert "sending" not in screen_text(app)

    drive(app, steps)


def test_escape_stops_an_answer_and_keeps_what_came() -> None:
    app, _ = chat_app(ENDS)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "go on")
        await until_text(pilot, "Hello!")
        assert "Stop" in screen_text(app)
        await pilot.press("escape")
        await until_text(pilot, "◼ stopped")
        assert chat_screen(pilot).session.chat.tree.messages()[-1].interrupted  # type: ignore[union-attr]
        assert "Stop" not in screen_text(app).splitlines()[-1]

    drive(app, steps)


def test_a_growing_composer_leaves_the_end_of_the_answer_in_sight() -> None:
    app, _ = chat_app(Script("\n\n".join(f"line {n}" for n in range(40)), never_ends=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "go on")
        await until_text(pilot, "line 39")
        await pilot.press("a", "ctrl+j", "b", "escape")
        await until_text(pilot, "◼ stopped")
        editor = chat_screen(pilot).composer.editor
        for height in (3, 5, 8):
            while editor.document.line_count < height:
                await pilot.press("ctrl+j", "c")
            await until(pilot, lambda height=height: editor.size.height == height)  # type: ignore[misc]
            await until_text(pilot, "◼ stopped")
        await pilot.press("ctrl+u")
        await until(pilot, lambda: editor.size.height == 1)
        await until_text(pilot, "◼ stopped")

    drive(app, steps)


def test_ctrl_c_stops_first_and_quits_when_pressed_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(app_module, "_TWICE", PATIENCE)  # however busy the machine is in between
    app, _ = chat_app(ENDS, folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "go on")
        await until_text(pilot, "Hello!")
        await pilot.press("ctrl+c")
        await until_text(pilot, "◼ stopped")
        await pilot.press("ctrl+c")
        await until_text(pilot, "Ctrl+C again quits")
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.is_running)

    drive(app, steps)


def test_prefill_shows_progress_what_was_reused_and_the_time_left() -> None:
    steps_of = (Prefill(640, 640, 1474), Prefill(812, 640, 1474, "differs at token 640 from what was kept"))
    app, _ = chat_app(Script(prefill=steps_of, prefill_delay=0.2, never_reads_all=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "long")
        await until_text(pilot, "812 of 1,474 tokens · 640 from the cache")
        assert " s left" in screen_text(app) or " ms left" in screen_text(app)
        assert "differs at token 640" not in screen_text(app)  # the inspector's words
        await pilot.press("escape")

    drive(app, steps)


def test_thinking_folds_and_unfolds() -> None:
    app, _ = chat_app(Script("42", thinking="six times seven"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "6 * 7?")
        assert "▸ Thought for" in screen_text(app)
        assert "six times seven" not in screen_text(app)
        await pilot.press("ctrl+up", "t")
        assert "▾ Thought for" in screen_text(app)
        assert "six times seven" in screen_text(app)

    drive(app, steps)


def test_enter_sends_and_ctrl_j_begins_a_new_line() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("a", "ctrl+j", "b")
        assert chat_screen(pilot).query_one(Editor).text == "a\nb"
        await pilot.press("enter")
        await until_text(pilot, "Hello!")

    drive(app, steps)
    assert client.requests[0].messages[-1]["content"] == "a\nb"


def test_an_empty_message_is_not_sent() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("enter", "space", "enter")
        await ask(pilot, "now")

    drive(app, steps)
    assert [[message["content"] for message in request.messages] for request in client.requests] == [["now"]]

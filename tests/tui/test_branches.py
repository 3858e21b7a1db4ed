"""Edits and second answers are branches one can walk."""

import asyncio
from typing import Any

import pytest
from localrun_testing.chat_app import ENDS, ask, chat_app, chat_screen, ready, sources, type_text, views
from localrun_testing.pilots import drive, screen_text, until, until_done, until_text
from localrun_testing.scripted_client import Script
from textual.message import Message
from textual.pilot import Pilot

from localrun_tui.screens.chat.chat_path import ChatPath
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.state.branches import Branches
from localrun_tui.state.messages import TurnBegan
from localrun_tui.state.turn import Turn


def test_a_second_answer_is_a_branch_that_can_be_walked() -> None:
    app, client = chat_app(Script("heads"), Script("tails"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "flip a coin")
        await pilot.press("ctrl+r")
        await until_text(pilot, "tails")
        await until_text(pilot, "‹ 2/2 ›")
        assert sources(pilot) == ["flip a coin", "tails"]
        await pilot.press("ctrl+up", "left")
        await until(pilot, lambda: sources(pilot) == ["flip a coin", "heads"])
        assert "‹ 1/2 ›" in screen_text(app)
        await pilot.press("ctrl+up", "left")  # there is none before the first
        await until_done(pilot)
        assert sources(pilot) == ["flip a coin", "heads"]

    drive(app, steps)
    assert [len(request.messages) for request in client.requests] == [1, 1]


def test_an_answer_that_is_asked_for_again_before_it_has_settled_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app(Script("heads"), Script("tails"))
    settles, settle = asyncio.Event(), ChatPath.show_kept

    async def settle_late(path: ChatPath, turn: Turn) -> bool:
        await settles.wait()
        return await settle(path, turn)

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await ready(pilot)
        monkeypatch.setattr(ChatPath, "show_kept", settle_late)
        await type_text(pilot, "flip a coin")
        await pilot.press("enter")
        await until(pilot, lambda: session.turn and session.turn.kept)
        first = session.turn
        await pilot.press("ctrl+r")
        await until(pilot, lambda: session.turn is not first and session.turn and session.turn.kept)
        settles.set()
        await until_text(pilot, "‹ 2/2 ›")
        assert sources(pilot) == ["flip a coin", "tails"]
        assert "heads" not in screen_text(app)

    drive(app, steps)


def test_two_requests_for_another_answer_at_once_leave_one_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app(Script("heads"), ENDS)

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await ready(pilot)
        await ask(pilot, "flip a coin")
        assert session.chat is not None
        head = session.chat.tree.head
        assert head is not None
        begun, post = [], session.post

        def told(message: Message) -> None:
            if isinstance(message, TurnBegan):
                begun.append(message.turn)
            post(message)

        monkeypatch.setattr(session, "post", told)
        await asyncio.gather(session.regenerate(head), session.regenerate(head))
        assert [turn.over for turn in begun] == [True, False]
        await pilot.press("escape")
        await until(pilot, lambda: begun[-1].over)
        await until_text(pilot, "‹ 3/3 ›")

    drive(app, steps)


def test_a_branch_that_is_chosen_before_an_answer_has_settled_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app(Script("heads"), Script("tails"))
    settles, settle = asyncio.Event(), ChatPath.show_kept

    async def settle_late(path: ChatPath, turn: Turn) -> bool:
        await settles.wait()
        return await settle(path, turn)

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await ready(pilot)
        await ask(pilot, "flip a coin")
        assert session.chat is not None
        first = session.chat.tree.head
        assert first is not None
        monkeypatch.setattr(ChatPath, "show_kept", settle_late)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: session.turn and session.turn.kept and session.turn.kept.id != first)
        await Branches(session).show(first)
        assert chat_screen(pilot).path.live is not None
        settles.set()
        await until(pilot, lambda: sources(pilot) == ["flip a coin", "heads"])

    drive(app, steps)


def test_keyboard_navigation_stays_on_the_message() -> None:
    app, _ = chat_app(Script("one"), Script("two"), Script("three"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "count")
        for text in ("two", "three"):
            await pilot.press("ctrl+r")
            await until_text(pilot, text)
            await until(pilot, lambda: chat_screen(pilot).path.live is None)
        await pilot.press("ctrl+up")
        for key, text in (("left", "two"), ("left", "one"), ("right", "two")):
            await pilot.press(key)
            await until(pilot, lambda text=text: sources(pilot)[-1:] == [text])  # type: ignore[misc]
            await until(pilot, lambda: [view.has_focus for view in views(pilot)][-1:] == [True])

    drive(app, steps)


def test_a_branch_command_keeps_the_focus_of_the_editor() -> None:
    app, _ = chat_app(Script("one"), Script("two"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "count")
        await pilot.press("ctrl+r")
        await until_text(pilot, "‹ 2/2 ›")
        await until(pilot, lambda: chat_screen(pilot).path.live is None)
        await type_text(pilot, "/branch 1")
        await pilot.press("enter")
        await until(pilot, lambda: sources(pilot) == ["count", "one"])
        await until_done(pilot)
        await pilot.press(*"care")
        assert chat_screen(pilot).query_one(Editor).text == "care"
        await pilot.press("ctrl+u")
        await type_text(pilot, "/compare")
        await pilot.press("enter")
        await until_text(pilot, "Versions side by side")
        await pilot.press("enter")
        await until(pilot, lambda: sources(pilot) == ["count", "two"])
        await until_done(pilot)
        await pilot.press(*"care")
        assert chat_screen(pilot).query_one(Editor).text == "care"

    drive(app, steps)


def test_an_edit_is_a_branch_and_what_was_typed_before_comes_back() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "my frist try")
        await type_text(pilot, "half a thought")
        await pilot.press("ctrl+up", "up", "e")
        assert "Editing" in screen_text(app)
        assert chat_screen(pilot).query_one(Editor).text == "my frist try"
        await until(pilot, lambda: [view.has_class("edited") for view in views(pilot)] == [True, False])
        await pilot.press("escape")
        await until(pilot, lambda: not any(view.has_class("edited") for view in views(pilot)))
        assert "Editing" not in screen_text(app)
        assert chat_screen(pilot).query_one(Editor).text == "half a thought"
        await pilot.press("ctrl+up", "up", "e", "!", "enter")
        await until(pilot, lambda: sources(pilot) == ["my frist try!", "Hello!"])
        assert "‹ 2/2 ›" in screen_text(app)
        assert chat_screen(pilot).query_one(Editor).text == "half a thought"

    drive(app, steps)
    assert [request.messages[0]["content"] for request in client.requests] == ["my frist try", "my frist try!"]

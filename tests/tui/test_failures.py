"""Answers that break off, repeat themselves or never begin: told, survived, and what had come is kept."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ENDS, ask, chat_app, chat_screen, notice, ready, send, sources, views
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.scripted_client import COMPLETION, Script
from textual.pilot import Pilot
from textual.screen import Screen

from localrun.base.errors import EngineError
from localrun.base.settings import write_setting
from localrun.chat.conversation import Chat
from localrun.chat.journal import ChatStore
from localrun.chat.token_estimate import about_tokens
from localrun_tui.screens.dialogs.ask import AskOne, AskText
from localrun_tui.screens.help_screen import HelpScreen


def test_a_question_that_a_kill_left_unanswered_says_so(tmp_path: Path) -> None:
    ChatStore(tmp_path).create().add_user("what was killed?")
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+l", "enter")
        await until_text(pilot, "◌ not answered: Ctrl+R asks again")
        await pilot.press("ctrl+r")
        await until_text(pilot, "Hello!")
        await until(pilot, lambda: "◌" not in screen_text(app))

    drive(app, steps)


def test_half_an_answer_is_kept_when_the_engine_dies_and_the_next_message_works() -> None:
    app, client = chat_app(Script("a long answer that breaks off", dies_after=3), Script("back again"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "tell me")
        assert "a long answe" in screen_text(app)
        assert "⚠ cut off: the engine is gone: killed by signal 9" in screen_text(app)
        assert chat_screen(pilot).path.tokens(None) > about_tokens("tell me"), "the half answer counts"
        await ask(pilot, "and now?")
        assert "back again" in screen_text(app)

    drive(app, steps, LARGE)
    assert [m["content"] for m in client.requests[1].messages] == ["tell me", "a long answe", "and now?"]
    assert client.requests[1].known_ids == ()  # what the engine had is not known


def test_an_answer_that_an_unforeseen_error_keeps_from_the_chat_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    app, _ = chat_app(Script("lost"))
    monkeypatch.setattr(Chat, "add_answer", fails)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "tell me")
        await until(pilot, lambda: "a bug" in notice(pilot))

    drive(app, steps)


def test_half_an_answer_is_named_after_its_model_when_the_chat_is_opened_again(tmp_path: Path) -> None:
    app, _ = chat_app(Script("a long answer that breaks off", dies_after=3), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "tell me")

    drive(app, steps)
    again, _ = chat_app(folder=tmp_path)

    async def look(pilot: Pilot[Any]) -> None:
        await pilot.press("ctrl+l", "enter")
        await until_text(pilot, "a long answe")
        assert views(pilot)[-1].document.speaker == "Qwen3 4B"

    drive(again, look)


@pytest.mark.parametrize(("setting", "sign"), [(None, "◼ stopped: the answer"), ("off", "⟳: the answer")])
def test_an_answer_that_only_repeats_itself_says_so_and_what_to_try(home: Path, setting: str | None, sign: str) -> None:
    """It ends where the setting does not forbid that; the figures name the loop in any case."""
    if setting:
        write_setting("stop_on_loop", setting)
    looped = replace(COMPLETION, stop_reason="stop" if setting else "loop", loop_period=4)
    app, client = chat_app(Script("la " * 20, completion=looped))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "sing")
        await until_text(pilot, f"{sign} repeats itself: the same 4 tokens over and over.")
        assert "repeat penalty" in screen_text(app)

    drive(app, steps)
    assert client.requests[0].stop_on_loop == (setting is None)


def test_a_failure_before_the_first_token_is_told_and_the_message_stays() -> None:
    app, client = chat_app(Script(fails=EngineError("the numbers are wrong", "load it again")), Script("fine"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "one")
        await until(pilot, lambda: "the numbers are wrong" in notice(pilot))
        assert sources(pilot) == ["one"]
        await ask(pilot, "two")
        assert notice(pilot) == ""

    drive(app, steps)
    assert [m["content"] for m in client.requests[1].messages] == ["one\n\ntwo"]  # templates want turns


def test_an_engine_that_raises_anything_else_does_not_end_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    app, client = chat_app()
    monkeypatch.setattr(client, "generate", lambda request: 1 / 0)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "one")
        await until(pilot, lambda: "something failed inside localrun: ZeroDivisionError" in notice(pilot))

    drive(app, steps)


def test_leaving_during_an_answer_keeps_what_came(tmp_path: Path) -> None:
    app, _ = chat_app(ENDS, folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "go on")
        await until_text(pilot, "Hello!")
        await pilot.press("ctrl+q")

    drive(app, steps)
    (summary,) = ChatStore(tmp_path).summaries()
    messages = ChatStore(tmp_path).open(summary.id).tree.messages()
    assert [(m.text, m.interrupted) for m in messages] == [("go on", False), ("Hello!", True)]


@pytest.mark.parametrize("screen", [lambda: AskText("Title?", "a"), lambda: AskOne("Which?", [("a", "A", "")])])
def test_a_dialog_that_is_answered_twice_is_left_once(screen: Callable[[], Screen[Any]]) -> None:
    app, _ = chat_app()
    answers: list[object] = []

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        app.push_screen(HelpScreen([], []))
        app.push_screen(screen(), answers.append)
        await pilot.pause()
        top = app.screen
        top.dismiss("a")
        top.dismiss("a")
        await pilot.pause()
        below = app.screen
        assert isinstance(below, HelpScreen), "the one below stays"
        below.dismiss(None)
        below.dismiss(None)
        await pilot.pause()
        assert app.screen_stack == [chat_screen(pilot)]

    drive(app, steps)
    assert answers == ["a"]


def test_a_dialog_that_is_answered_while_another_covers_it_is_left_after_that_one() -> None:
    app, _ = chat_app()
    answers: list[object] = []

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        app.push_screen(AskText("Title?", "a"), answers.append)
        await pilot.pause()
        below = app.screen
        app.push_screen(HelpScreen([], []))
        await pilot.pause()
        below.dismiss("a")
        below.dismiss("b")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen), "the one above stays"
        app.screen.dismiss(None)
        await until(pilot, lambda: answers)
        assert app.screen_stack == [chat_screen(pilot)]

    drive(app, steps)
    assert answers == ["a"]


def test_a_dialog_that_is_left_before_it_is_drawn_ends_nothing() -> None:
    app, _ = chat_app()
    answers: list[object] = []

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        dialog = AskOne("Which?", [("a", "A", "")])
        app.push_screen(dialog, answers.append)
        dialog.dismiss("a")
        await until(pilot, lambda: answers)
        await until(pilot, lambda: app.screen_stack == [chat_screen(pilot)])

    drive(app, steps)
    assert answers == ["a"]

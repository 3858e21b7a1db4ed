"""Talking: messages go out, answers come in, and whatever goes wrong is told and survived."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import CHOICE, ENDS, ask, chat_app, chat_screen, notice, ready, send, type_text, views
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.scripted_client import COMPLETION, Script, ScriptedClient
from localrun_testing.waiting import PATIENCE
from textual.pilot import Pilot

from localrun.base.errors import DoesNotFitError, EngineError
from localrun.base.events import Event, Prefill
from localrun.base.request import Request
from localrun.base.settings import write_setting
from localrun.chat.journal import ChatStore
from localrun_tui.screens.chat.composer import Editor


def test_an_answer_streams_in_and_is_kept(tmp_path: Path) -> None:
    app, client = chat_app(Script("It is **12**.\n\n- one\n- two"), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "what is 3 * 4?")
        assert [view.source for view in views(pilot)] == ["what is 3 * 4?", "It is **12**.\n\n- one\n- two"]
        assert "It is 12." in screen_text(app)
        assert "41.3 tok/s" in screen_text(app)
        assert "1,216/1,474 reused" in screen_text(app)

    drive(app, steps)
    (summary,) = ChatStore(tmp_path).summaries()
    chat = ChatStore(tmp_path).open(summary.id)
    asked, answer = chat.tree.path(chat.tree.head)
    assert (asked.text, answer.text, answer.interrupted) == ("what is 3 * 4?", "It is **12**.\n\n- one\n- two", False)
    assert answer.ids[-1] == len(answer.text) // 4 - (len(answer.text) % 4 == 0)
    assert client.closed


def test_the_next_message_hands_the_ids_so_far_to_the_engine(tmp_path: Path) -> None:
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


def test_typing_while_the_model_loads_is_answered_afterwards(tmp_path: Path) -> None:
    loaded = threading.Event()
    app, client = chat_app(gate=loaded, folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "loading")
        await send(pilot, "are you there?")
        await until(pilot, lambda: views(pilot))
        assert client.requests == []
        assert len(ChatStore(tmp_path).summaries()) == 1  # on disk before there is a model
        loaded.set()
        await until_text(pilot, "Hello!")

    drive(app, steps)


def test_a_message_without_a_model_says_how_to_choose_one_and_is_answered_then(home: Path) -> None:
    chosen = chat_app()[1]
    app, _ = chat_app(client=chosen, choose=lambda: None, folder=home)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Welcome to localrun")
        await pilot.press("escape")
        await until_text(pilot, "Ask anything. Enter sends.")
        await send(pilot, "are you there?")
        await until_text(pilot, "waits for a model: Ctrl+O chooses a model")
        chat_screen(pilot).run_guarded(app.session.load(CHOICE))
        await until_text(pilot, "Hello!")
        assert app.session.chat is not None
        assert app.session.model.choice == replace(CHOICE, chat_id=app.session.chat.id)
        assert "◌" not in screen_text(app)

    drive(app, steps)


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


def test_a_load_can_be_given_up() -> None:
    loaded = threading.Event()
    app, client = chat_app(gate=loaded)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "loading")
        await pilot.press("escape")
        await until_text(pilot, "no model: Ctrl+O")
        assert notice(pilot) == ""
        loaded.set()

    drive(app, steps)
    assert client.requests == []


def test_a_load_that_fails_says_why_and_leaves_the_app_usable() -> None:
    app, _ = chat_app(fails=DoesNotFitError("it needs 6 GiB, and 3 are free", "choose a smaller precision"))

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "choose a smaller precision")
        assert "it needs 6 GiB" in notice(pilot)
        await type_text(pilot, "still typing")
        assert "still typing" in screen_text(app)

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


def test_ctrl_c_stops_first_and_quits_when_pressed_twice() -> None:
    app, _ = chat_app(ENDS)

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


def test_messages_sent_during_an_answer_go_out_one_after_the_other() -> None:
    may_end = threading.Event()

    class Gated(ScriptedClient):
        def events(self, request: Request) -> Iterator[Event]:
            may_end.wait(PATIENCE)
            yield from super().events(request)

    app, client = chat_app(client=Gated([Script(), Script("second"), Script("third")]))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "first")
        await send(pilot, "then this")
        await send(pilot, "and that")
        await until_text(pilot, "2 messages wait")
        assert "and that" in screen_text(app)
        may_end.set()
        await until_text(pilot, "third")
        await until(pilot, lambda: not chat_screen(pilot).session.waiting)

    drive(app, steps)
    assert [len(request.messages) for request in client.requests] == [1, 3, 5]
    assert client.requests[2].messages[-1]["content"] == "and that"


def test_what_waits_is_held_by_escape_changed_taken_back_and_sent_when_told_to() -> None:
    app, client = chat_app(ENDS, Script("second"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "first")
        await until_text(pilot, "Hello!")
        for text in ("not this", "then that"):
            await send(pilot, text)
        await until_text(pilot, "2 messages wait")
        await type_text(pilot, "a draft")
        await pilot.press("escape")
        await until_text(pilot, "◼ stopped")
        await until_text(pilot, "2 messages held")
        await pilot.press("up", "up", "delete")
        await until_text(pilot, "1 message held")
        await until(pilot, lambda: "not this" not in screen_text(app))
        await pilot.press("e")
        await until_text(pilot, "changes it where it waits")
        await pilot.press("space", *"too", "enter")
        await until_text(pilot, "then that too")
        assert chat_screen(pilot).query_one(Editor).text == "a draft"
        assert len(client.requests) == 1
        await pilot.press("up")
        await until_text(pilot, "⏎ Send now")
        await pilot.press("enter")
        await until_text(pilot, "second")

    drive(app, steps)
    assert [m["content"] for m in client.requests[1].messages] == ["first", "Hello!", "then that too"]


def test_half_an_answer_is_kept_when_the_engine_dies_and_the_next_message_works() -> None:
    app, client = chat_app(Script("a long answer that breaks off", dies_after=3), Script("back again"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "tell me")
        assert "a long answe" in screen_text(app)
        assert "⚠ cut off: the engine is gone: killed by signal 9" in screen_text(app)
        await ask(pilot, "and now?")
        assert "back again" in screen_text(app)

    drive(app, steps, LARGE)
    assert [m["content"] for m in client.requests[1].messages] == ["tell me", "a long answe", "and now?"]
    assert client.requests[1].known_ids == ()  # what the engine had is not known


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
        assert views(pilot)[-1].document.speaker == "qwen3-4b"

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
        assert [view.source for view in views(pilot)] == ["one"]
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


def test_prefill_shows_progress_what_was_reused_and_the_time_left() -> None:
    steps_of = (Prefill(640, 640, 1474), Prefill(812, 640, 1474, "differs at token 640 from what was kept"))
    app, _ = chat_app(Script(prefill=steps_of, prefill_delay=0.2, never_reads_all=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "long")
        await until_text(pilot, "812 of 1,474 tokens · 640 from the cache")
        assert " s left" in screen_text(app) or " ms left" in screen_text(app)
        assert "differs at token 640" in screen_text(app)
        await pilot.press("escape")

    drive(app, steps)


def test_thinking_folds_and_unfolds() -> None:
    app, _ = chat_app(Script("42", thinking="six times seven"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "6 * 7?")
        assert "▸ Thought for" in screen_text(app)
        assert "six times seven" not in screen_text(app)
        await pilot.press("up", "t")
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

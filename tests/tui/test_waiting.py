"""Messages that wait for the answer before them."""

import threading
from collections.abc import Iterator
from typing import Any

from localrun_testing.chat_app import ENDS, chat_app, chat_screen, ready, send, type_text
from localrun_testing.pilots import drive, screen_text, until, until_text
from localrun_testing.scripted_client import Script, ScriptedClient
from localrun_testing.waiting import PATIENCE
from textual.pilot import Pilot

from localrun.base.content import text_of
from localrun.base.events import Event
from localrun.base.request import Request
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.state.waiting import WaitingMessages


def waited(waiting: WaitingMessages) -> list[str]:
    return [text_of(content) for content in waiting.contents]


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


def test_taking_others_back_leaves_the_one_that_is_changed_in_its_place() -> None:
    app, client = chat_app(ENDS)

    async def steps(pilot: Pilot[Any]) -> None:
        waiting = chat_screen(pilot).session.waiting
        await ready(pilot)
        await send(pilot, "first")
        await until_text(pilot, "Hello!")
        for text in ("one", "two", "three", "four"):
            await send(pilot, text)
        await until_text(pilot, "4 messages wait")
        await pilot.press("up", "up", "e")  # three
        await until_text(pilot, "changes it where it waits")
        await pilot.press("ctrl+up", "up", "up", "delete")  # two
        await until_text(pilot, "3 messages held")
        chat_screen(pilot).composer.write("three, changed")
        chat_screen(pilot).composer.submit()
        await until(pilot, lambda: waited(waiting) == ["one", "three, changed", "four"])
        await pilot.press("up", "e")  # four
        await until_text(pilot, "changes it where it waits")
        await pilot.press("ctrl+up", "delete")
        await until(pilot, lambda: waited(waiting) == ["one", "three, changed"])
        chat_screen(pilot).composer.write("four, after all")
        chat_screen(pilot).composer.submit()
        await until(pilot, lambda: waited(waiting) == ["one", "three, changed", "four, after all"])
        assert not waiting.held

    drive(app, steps)
    assert len(client.requests) == 1


def test_sending_one_now_leaves_the_one_that_is_changed_until_it_is_changed() -> None:
    app, client = chat_app(ENDS, Script("second"), Script("third"))

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await ready(pilot)
        await send(pilot, "first")
        await until_text(pilot, "Hello!")
        for text in ("one", "two"):
            await send(pilot, text)
        await until_text(pilot, "2 messages wait")
        await pilot.press("escape")
        await until_text(pilot, "2 messages held")
        await pilot.press("up", "e")  # two
        await until_text(pilot, "changes it where it waits")
        await pilot.press("ctrl+up", "up", "enter")  # one
        await until_text(pilot, "second")
        await until(pilot, lambda: not session.answering)
        assert waited(session.waiting) == ["two"]
        chat_screen(pilot).composer.write("two, changed")
        chat_screen(pilot).composer.submit()
        await until_text(pilot, "third")

    drive(app, steps)
    assert [request.messages[-1]["content"] for request in client.requests] == ["first", "one", "two, changed"]

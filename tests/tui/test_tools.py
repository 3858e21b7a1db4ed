"""Tools in the app: asked about in a card while typing stays possible, shown folded."""

import json
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, send, text_of, type_text, views
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.scripted_client import Script, ScriptedClient
from textual.pilot import Pilot

from localrun.base.events import ToolCall
from localrun.base.request import Request
from localrun.tools.consent import ConsentQuestion
from localrun.tools.running_call import ToolResult
from localrun.tools.tool import Tool
from localrun_tui.screens.chat.call_lines import answer_markdown
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.state.chat_tools import AppTools
from localrun_tui.state.messages import ToolAsked
from localrun_tui.state.pending_consent import PendingConsent


def calling(name: str, text: str = "", /, **arguments: object) -> Script:
    return Script(text, calls=(ToolCall("c1", name, json.dumps(arguments)),))


async def choose(pilot: Pilot[Any], names: str) -> None:
    await ready(pilot)
    await send(pilot, f"/tools {names}")
    await until(pilot, lambda: chat_screen(pilot).session.tools.for_model)


async def asked(pilot: Pilot[Any]) -> str:
    """What the card shows, once it is there."""
    card = chat_screen(pilot).pane.consent
    await until(pilot, lambda: card.display)
    return f"{card.border_title}\n{card._what.render()}"


async def answered(pilot: Pilot[Any]) -> str:
    """The answer on the screen, once it is kept."""
    screen = chat_screen(pilot)
    await until(pilot, lambda: screen.session.turn is not None and not screen.session.answering)
    await until(pilot, lambda: screen.path.live is None)
    return text_of(views(pilot)[-1])


def test_a_call_is_shown_folded_and_its_result_written_out() -> None:
    app, client = chat_app(calling("calculator", "Let me see.", expression="2+`2`"), Script("It is 4."))

    async def go(pilot: Pilot[Any]) -> None:
        await choose(pilot, "calculator")
        await send(pilot, "2+2?")
        shown = await answered(pilot)
        assert "calculator  expression: 2+`2`" in shown
        assert "It is 4." in shown
        assert "cannot be computed" in shown, "an error is said at once"
        await until(pilot, lambda: chat_screen(pilot).path.live is None)
        view = views(pilot)[-1]
        view.focus()
        assert view.message is not None
        before = len(view.lines(76))
        await pilot.press("d")
        await until(pilot, lambda: len(view.lines(76)) > before)
        await pilot.press("d")
        await until(pilot, lambda: len(view.lines(76)) == before)

    drive(app, go, size=LARGE)
    assert [len(request.tools) for request in client.requests] == [1, 1]
    assert client.requests[1].messages[-1]["role"] == "tool"


def test_a_tool_asks_while_typing_stays_possible(folder: Path) -> None:
    app, client = chat_app(calling("read_file", path="notes.txt"), Script("Milk."))

    async def go(pilot: Pilot[Any]) -> None:
        await choose(pilot, "read")
        await send(pilot, "what is in it?")
        shown = await asked(pilot)
        assert "The model wants to call read_file" in shown
        assert "path        notes.txt" in shown
        await pilot.press("o", "c", "a", "enter")
        editor = chat_screen(pilot).query_one(Editor)
        await until(pilot, lambda: len(chat_screen(pilot).session.waiting) == 1)
        assert editor.text == ""
        assert chat_screen(pilot).session.answering, "what is typed is no answer"
        await pilot.press("f6", "c")
        await until(pilot, lambda: client.requests[1:] and client.requests[1].messages[-1]["content"] == "buy milk")
        await until(pilot, lambda: not chat_screen(pilot).pane.consent.display)
        await until(pilot, lambda: chat_screen(pilot).session.tools.tools.folders.allowed == [folder])
        assert isinstance(app.focused, Editor)

    drive(app, go, size=LARGE)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
def test_a_long_difference_is_read_to_its_end_beside_the_editor(folder: Path, size: tuple[int, int]) -> None:
    text = "".join(f"line {number}\n" for number in range(30))
    app, _ = chat_app(calling("write_file", path="new.txt", text=text), Script("Done."))

    async def go(pilot: Pilot[Any]) -> None:
        await choose(pilot, "write")
        await send(pilot, "write it")
        assert "line 29" in await asked(pilot)
        card, editor = chat_screen(pilot).pane.consent, chat_screen(pilot).query_one(Editor)
        await until(pilot, lambda: editor.region.height >= 1 and editor.region.bottom <= size[1] - 2)
        scroll = card.text
        await pilot.press("pagedown")
        assert scroll.scroll_y == 0, "the key was the editor's"
        await pilot.press("f6")
        await pilot.press(*["pagedown"] * 8)
        await until(pilot, lambda: scroll.scroll_y == scroll.max_scroll_y > 0)
        await pilot.press("pageup")
        await until(pilot, lambda: scroll.scroll_y < scroll.max_scroll_y)
        await pilot.press("o")
        await until(pilot, lambda: (folder / "new.txt").exists())
        assert "Done." in await answered(pilot)

    drive(app, go, size=size)


def test_each_question_is_gone_to_before_it_is_answered(folder: Path) -> None:
    app, _ = chat_app(calling("run_command", command="touch ran"))

    async def go(pilot: Pilot[Any]) -> None:
        await choose(pilot, "run")
        await send(pilot, "run it")
        await asked(pilot)
        await pilot.press("f6")
        screen = chat_screen(pilot)
        first = screen.pane.consent.pending
        assert first
        screen.post_message(ToolAsked(second := PendingConsent(first.question)))
        await until(pilot, lambda: screen.pane.consent.pending is second)
        await pilot.press("o")
        assert screen.query_one(Editor).text == "o"
        assert second.is_open
        await pilot.press("escape")
        assert "stopped" in await answered(pilot)

    drive(app, go, size=LARGE)


def test_a_question_of_another_chat_says_so_and_allows_nothing_for_this_one(folder: Path) -> None:
    app, client = chat_app(calling("read_file", path="notes.txt"), Script("Milk."))

    async def go(pilot: Pilot[Any]) -> None:
        await choose(pilot, "read")
        await send(pilot, "what is in it?")
        shown = await asked(pilot)
        assert f"for  {folder}" in shown
        card = chat_screen(pilot).pane.consent
        assert card._options.option_count == 4
        await pilot.press("ctrl+n")
        await until(pilot, lambda: "“what is in it?” wants to call read_file" in str(card.border_title))
        assert card._options.option_count == 3
        await pilot.press("f6", "c")
        assert card.display, "there is no such answer"
        await pilot.press("o")
        await until(pilot, lambda: client.requests[1:] and client.requests[1].messages[-1]["content"] == "buy milk")
        assert not chat_screen(pilot).session.tools.tools.folders.allowed

    drive(app, go, size=LARGE)


def test_the_key_of_a_question_selects_nothing_while_there_is_none() -> None:
    app, _ = chat_app()

    async def go(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "half of it")
        await pilot.press("f6", *" and")
        editor = chat_screen(pilot).query_one(Editor)
        assert editor.text == "half of it and"
        await pilot.press("f6", "ctrl+c")
        await until_text(pilot, "Ctrl+C again quits")

    drive(app, go)


def test_names_of_tools_are_no_markup(folder: Path) -> None:
    app, _ = chat_app()
    hostile = Tool("[/bold] [red]x", "", {}, lambda arguments, call: ToolResult(""), server="[@click=app.quit]s")
    question = ConsentQuestion(hostile, {"[/]": "[bold]y[/bold]", "n" * 300: "z"}, "[/] /home", "", ("once", "no"))

    async def go(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        chat_screen(pilot).post_message(ToolAsked(PendingConsent(question)))
        await asked(pilot)
        await until_text(pilot, "The model wants to call [@click=app.quit]s [/bold] [red]x")
        for shown in ("for  [/] /home", "[bold]y[/bold]"):
            assert shown in screen_text(app)

    drive(app, go, size=LARGE)


@pytest.mark.parametrize(
    ("keys", "is_told"),
    [("f6 a enter", True), ("escape", False), ("f6 escape", False), ("ctrl+c", False), ("f6 ctrl+c", False)],
)
def test_a_command_that_is_not_allowed_is_not_run(folder: Path, keys: str, is_told: bool) -> None:
    """By an answer to the question, or by one that stops the answer, wherever one is."""
    app, client = chat_app(calling("run_command", command="touch ran"), Script("As you like."))

    async def go(pilot: Pilot[Any]) -> None:
        await choose(pilot, "run")
        await send(pilot, "run it")
        assert "$ touch ran" in await asked(pilot)
        await pilot.press(*keys.split())
        shown = await answered(pilot)
        assert ("did not allow" in shown) == is_told
        assert ("stopped" in shown) != is_told
        await until(pilot, lambda: not chat_screen(pilot).pane.consent.display)

    drive(app, go, size=LARGE)
    assert len(client.requests) == (2 if is_told else 1)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_an_answer_that_is_stopped_before_it_asks_does_not_ask() -> None:
    tools = AppTools(lambda pending: pending.answer("once"))
    question = ConsentQuestion(
        Tool("touch", "", {}, lambda arguments, call: ToolResult("")), {}, "", "", ("once", "no")
    )
    assert tools.ask(question) == "once"
    tools.give_up()
    assert tools.ask(question) == "no"
    tools.generate(ScriptedClient(), Request(messages=()))
    assert tools.ask(question) == "once", "that was the answer before"


def test_escape_stops_a_tool_that_runs(folder: Path) -> None:
    app, _ = chat_app(calling("run_command", command="touch ran; sleep 600"))

    async def go(pilot: Pilot[Any]) -> None:
        await choose(pilot, "run")
        await send(pilot, "run it")
        await asked(pilot)
        await pilot.press("f6", "o")
        await until(pilot, lambda: (folder / "ran").exists())
        await pilot.press("escape")
        assert "stopped" in await answered(pilot)

    drive(app, go, size=LARGE)


def test_what_a_chat_was_allowed_ends_with_it(folder: Path) -> None:
    app, _ = chat_app()

    async def go(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, f"/tools allow {folder}")
        tools = chat_screen(pilot).session.tools.tools
        await until(pilot, lambda: tools.folders.allowed == [folder])
        await ask(pilot, "hi")
        assert tools.folders.allowed == [folder], "it was for the chat that begins now"
        await pilot.press("ctrl+n")
        await until(pilot, lambda: not tools.folders.allowed)

    drive(app, go, size=LARGE)


def test_no_sign_of_markdown_in_a_call_counts() -> None:
    from localrun.base.content import CallPart, ResultPart

    call = CallPart("c", "x", json.dumps({"a": "`**b** <b>\n\n# c"}))
    result = ResultPart("c", "x", "```\n# d\n\x1b[2J", bytes=3)
    assert answer_markdown((call, result)) == "> 🔧 ``x  a: `**b** <b>  # c``\n\n> ⤷ `x: 3 bytes in 0.00 ms`"
    assert answer_markdown((call, result), is_open=True).endswith("\n\n````\n```\n# d\n\n````")

"""Tools in the app: chosen on one screen, asked about in a card while typing stays possible, shown folded."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from localrun_testing import fake_mcp_server
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, send, text_of, views
from localrun_testing.pilots import LARGE, drive, until
from localrun_testing.scripted_client import Script
from textual.pilot import Pilot

from localrun.base.events import ToolCall
from localrun.tools.mcp.config import ServerEntry, read_servers, write_server
from localrun_tui.screens.chat.call_lines import answer_markdown
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.screens.dialogs.ask import AskOne, AskText
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.tools.tools_screen import ToolsScreen
from localrun_tui.widgets.model_list import ModelList


def calling(name: str, text: str = "", /, **arguments: object) -> Script:
    return Script(text, calls=(ToolCall("c1", name, json.dumps(arguments)),))


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("here")
    (folder / "notes.txt").write_text("buy milk")
    monkeypatch.chdir(folder)
    return folder


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


@pytest.mark.parametrize("way", ["no", "escape"])
def test_a_command_that_is_not_allowed_is_not_run(folder: Path, way: str) -> None:
    app, client = chat_app(calling("run_command", command="touch ran"), Script("As you like."))

    async def go(pilot: Pilot[Any]) -> None:
        await choose(pilot, "run")
        await send(pilot, "run it")
        assert "$ touch ran" in await asked(pilot)
        await pilot.press(*(("f6", "a", "enter") if way == "no" else ("escape",)))
        shown = await answered(pilot)
        assert ("did not allow" in shown) == (way == "no")
        assert ("stopped" in shown) == (way == "escape")
        await until(pilot, lambda: not chat_screen(pilot).pane.consent.display)

    drive(app, go, size=LARGE)
    assert len(client.requests) == (2 if way == "no" else 1)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


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


async def open_tools(pilot: Pilot[Any]) -> ToolsScreen:
    await ready(pilot)
    await send(pilot, "/tools")
    await until(pilot, lambda: isinstance(pilot.app.screen, ToolsScreen))
    screen = pilot.app.screen
    assert isinstance(screen, ToolsScreen)
    return screen


def states(screen: ToolsScreen) -> dict[str, str]:
    return {item.value.name: item.value.state for item in screen.query_one(ModelList).items}


def test_tools_are_switched_on_one_screen(folder: Path) -> None:
    app, _ = chat_app()

    async def go(pilot: Pilot[Any]) -> None:
        screen = await open_tools(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: states(screen)["calculator"] == "on")
        tools = chat_screen(pilot).session.tools.tools
        assert [tool.name for tool in tools.built_in] == ["calculator"]
        await pilot.press("enter")
        await until(pilot, lambda: states(screen)["calculator"] == "off")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is chat_screen(pilot))
        await send(pilot, "/tools teleport")
        await until(pilot, lambda: "teleport means no tool" in notice(pilot))

    drive(app, go, size=LARGE)


def test_servers_are_added_watched_and_removed_there(home: Path) -> None:
    write_server(ServerEntry("ends", sys.executable, (fake_mcp_server.__file__, "ends")))
    app, _ = chat_app()

    async def go(pilot: Pilot[Any]) -> None:
        screen = await open_tools(pilot)
        assert states(screen)["ends"] == "off"
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AskText))
        await pilot.press(*f"fine '{sys.executable}' '{fake_mcp_server.__file__}'", "enter")
        await until(pilot, lambda: screen.current and screen.current.name == "fine")
        await pilot.press("enter")
        await until(pilot, lambda: states(screen)["fine"] == "on, 1 tool")
        await pilot.press("up", "enter")
        await until(pilot, lambda: states(screen)["ends"] == "on, of no use")
        assert screen.current
        assert "exit code 3" in screen.current.about
        assert "\x1b" not in screen.current.about
        await pilot.press("down", "delete")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: "fine" not in states(screen))
        await until(pilot, lambda: chat_screen(pilot).session.tools.tools.names == ["mcp:ends"])
        assert [entry.name for entry in read_servers().servers] == ["ends"]

    drive(app, go, size=LARGE)


def test_servers_of_other_programs_are_taken_over_there(home: Path) -> None:
    cursor = Path.home() / ".cursor" / "mcp.json"
    cursor.parent.mkdir(parents=True)
    cursor.write_text(json.dumps({"mcpServers": {"notes": {"command": "notes"}, "odd": {"command": ""}}}))
    app, _ = chat_app()

    async def go(pilot: Pilot[Any]) -> None:
        screen = await open_tools(pilot)
        await pilot.press("i")
        await until(pilot, lambda: isinstance(app.screen, AskOne))
        assert isinstance(app.screen, AskOne)
        assert app.screen.text == "Cursor: odd: the command is empty"
        await pilot.press("enter")
        await until(pilot, lambda: states(screen).get("notes") == "off")
        assert read_servers().find("notes").command == "notes"

    drive(app, go, size=LARGE)


def test_what_is_allowed_is_taken_back_there(folder: Path) -> None:
    app, _ = chat_app()

    async def go(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        tools = chat_screen(pilot).session.tools.tools
        tools.always.add(next(tool for tool in tools.known if tool.name == "fetch_url"), "example.org")
        screen = await open_tools(pilot)
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, AskText))
        await pilot.press("enter")
        await until(pilot, lambda: states(screen)[str(folder)] == "is read")
        assert states(screen)["fetch_url example.org"] == "is allowed"
        await pilot.press("end", "delete")
        await until(pilot, lambda: "fetch_url example.org" not in states(screen))
        await pilot.press("end", "enter")
        await until(pilot, lambda: str(folder) not in states(screen))
        assert not list(tools.always)
        assert not tools.folders.allowed

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

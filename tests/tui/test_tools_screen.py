"""Tools, MCP servers, folders and what is always allowed, on one screen of the app."""

import json
import sys
from pathlib import Path
from typing import Any

from localrun_testing import fake_mcp_server
from localrun_testing.chat_app import chat_app, chat_screen, notice, ready, send
from localrun_testing.pilots import LARGE, drive, until, until_text
from textual.events import Paste
from textual.pilot import Pilot

from localrun.tools.mcp.config import ServerEntry, read_servers, write_server
from localrun_tui.screens.dialogs.ask import AskOne, AskText
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.tools.tools_screen import ToolsScreen
from localrun_tui.widgets.model_list import ModelList


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
        app.post_message(Paste(f"fine '{sys.executable}' '{fake_mcp_server.__file__}'"))
        await pilot.pause()
        await pilot.press("enter")
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


def test_a_line_that_names_no_server_stands_there_again_with_what_is_wrong(home: Path) -> None:
    app, _ = chat_app()

    async def go(pilot: Pilot[Any]) -> None:
        screen = await open_tools(pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AskText))
        await pilot.press(*"files", "enter")
        await until_text(pilot, "files: the command is empty; name it first")
        assert isinstance(app.screen, AskText)
        assert app.screen.field.value == "files"
        await pilot.press("end", *" npx", "enter")
        await until(pilot, lambda: screen.current and screen.current.name == "files")

    drive(app, go)


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
        for answer in "ny":
            assert states(screen)["fetch_url example.org"] == "is allowed"
            await pilot.press("end", "delete")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            await pilot.press(answer)
            await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: "fetch_url example.org" not in states(screen))
        await pilot.press("end", "enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        assert tools.folders.allowed
        await pilot.press("y")
        await until(pilot, lambda: str(folder) not in states(screen))
        assert not list(tools.always)
        assert not tools.folders.allowed

    drive(app, go, size=LARGE)

"""The main screens as text and, some of them, as pictures, compared with the files in `snapshots`.

    python -m pytest tests/tui/test_snapshots.py --snapshot-update

writes these files anew, after a look at what changed.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, send
from localrun_testing.instruction_sets import using
from localrun_testing.model_screens import known_machine
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until, until_text
from localrun_testing.scripted_client import ANSWER, RATES, Script
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex
from textual.command import CommandPalette
from textual.pilot import Pilot

from localrun.base.errors import HubError, PromptTooLongError
from localrun_tui.app import LocalrunApp
from localrun_tui.screens import first_run
from localrun_tui.screens.chat import prompt_library
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.screens.chat.welcome import Welcome
from localrun_tui.screens.downloads.download import Download
from localrun_tui.screens.settings import settings_screen
from localrun_tui.state import long_text, session, turn
from localrun_tui.themes import DARK, LIGHT

MIB, GIB = 1 << 20, 1 << 30
CUT = HubError("the connection was cut five times", "check the network, then press r")
DOWNLOADS = [
    Download("a", "qwen3-4b", "Qwen/Qwen3-4B-GGUF", "Q4_K_M", "running", 900 * MIB, 2400 * MIB, rate=22e6),
    Download("b", "llama-3.1-8b", "org/llama", "Q4_K_M", "queued", 0, 5 * GIB),
    Download("c", "gemma-3-4b", "org/gemma", "Q8_0", "failed", 100 * MIB, 4 * GIB, error=CUT),
    Download("d", "smollm3", "org/smollm", "Q8_0", "done", 3 * GIB, 3 * GIB),
]
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.S)  # from a host; a picture without them takes what is there
IDS = re.compile(r"terminal-\d+")  # another for every text


class Text(SingleFileSnapshotExtension):
    """One file for each name, whichever test compares with it."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(Path(test_location.filepath).parent / "snapshots")

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        return str(index)


class Picture(Text):
    file_extension = "svg"


class Look(NamedTuple):
    """How the app is looked at; `pictures` are the screens that are compared as such, too."""

    size: tuple[int, int]
    theme: str
    pictures: tuple[str, ...] = ()
    colour: bool = True


LOOKS = {
    "80x24": Look(SMALL, DARK.name, ("first-run", "chat")),
    "120x40": Look(LARGE, LIGHT.name, ("chat", "inspector", "precision")),
    "80x24-light": Look(SMALL, LIGHT.name, ("catalogue",)),
    "80x24-without-colour": Look(SMALL, DARK.name, colour=False),
}


async def walk(app: LocalrunApp, pilot: Pilot[Any]) -> AsyncIterator[str]:
    """Through the app by keys; at each name its screen is there to be looked at."""
    await until_text(pilot, "Get Qwen3.5 4B")
    yield "first-run"
    await pilot.press("enter")
    await ready(pilot)
    await until_text(pilot, "is ready")
    await until(pilot, lambda: any("not kept" in str(one.render()) for one in chat_screen(pilot).query(Welcome)))
    yield "new-chat"
    await ask(pilot, "What is a KV cache?")
    await pilot.press("ctrl+r")
    await until_text(pilot, "‹ 2/2 ›")
    await until_text(pilot, "6,638 left")
    chat_screen(pilot).query_one(Editor).cursor_blink = False
    yield "chat"
    await pilot.press("ctrl+g")
    await until_text(pilot, "Last answer")
    inspector = chat_screen(pilot).inspector
    await until(pilot, lambda: "1,500 of 8,192 tokens" in str(inspector.query_one("#inspector-lines").render()))
    yield "inspector"
    await pilot.press("ctrl+g", "ctrl+l")
    await until_text(pilot, "3 messages")
    yield "chats"
    if app.size.width == SMALL[0]:
        async for screen in over_the_chat(app, pilot):
            yield screen
    await pilot.press("ctrl+l", "f1")
    await until_text(pilot, "New line")
    yield "help"
    await pilot.press("escape", "ctrl+s")
    await until_text(pilot, "System prompt")
    yield "this-chat"
    await pilot.press("escape")
    app.action_settings()
    await until_text(pilot, "Temperature")
    yield "settings"
    await pilot.press("escape", "f5")
    await until_text(pilot, "GiB left")
    await pilot.press("down", "down", "s", "left")
    await until_text(pilot, "The cache of 4,096 tokens")
    yield "explain"
    await pilot.press("escape", "ctrl+o")
    if app.size.width == SMALL[0]:
        async for screen in other_models(pilot):
            yield screen
    await pilot.press("right")
    await until_text(pilot, "★ begin with it")
    yield "catalogue"
    await pilot.press("enter")
    await until_text(pilot, "▒ program")
    yield "precision"
    await pilot.press("escape", "escape")
    app.downloads.all = lambda: DOWNLOADS  # type: ignore[method-assign]
    app.action_downloads()
    await until_text(pilot, "done and checked")
    yield "downloads"
    app.session.disk.unwritten = list  # type: ignore[method-assign]  # or it asks for the chat, which is in memory, too
    await pilot.press("ctrl+q")
    await until_text(pilot, "Downloads end with the app")
    yield "quit"


async def other_models(pilot: Pilot[Any]) -> AsyncIterator[str]:
    """What models take on disk, the hub and servers. From the list of models, and back to it."""
    await until_text(pilot, "builtin")
    await until_text(pilot, "fits in memory")
    yield "on-disk"
    await pilot.press("s")
    await until_text(pilot, "Packed weights")
    yield "storage"
    await pilot.press("escape", "right", "right")
    await until_text(pilot, "search Hugging Face")
    yield "hub"
    await pilot.press("right")
    await until_text(pilot, "No server is set up")
    yield "servers"
    await pilot.press("left", "left", "left")


async def over_the_chat(app: LocalrunApp, pilot: Pilot[Any]) -> AsyncIterator[str]:
    """What comes in front of a chat, where there is little room for it. From the list of chats, and back to it."""
    await pilot.press("ctrl+l", "slash", "c")
    await until_text(pilot, "Compare versions: of the last")
    yield "commands"
    await pilot.press(*"ompare", "enter")
    await until_text(pilot, "Versions side by side")
    await until_text(pilot, "2/2 ·")
    yield "compare"
    await pilot.press("escape", *"/sees", "enter")
    await until_text(pilot, "to be computed")
    yield "sees"
    await pilot.press("escape", *"/prompt", "enter")
    await until_text(pilot, "Careful thinker")
    yield "prompts"
    await pilot.press("escape", *"/attach", "enter")
    await until_text(pilot, "notes.txt")
    yield "attach"
    await pilot.press("escape", "f2")
    await until_text(pilot, "Title of this chat")
    yield "title"
    await pilot.press("escape", "ctrl+f", *"cache")
    await until_text(pilot, "of 2")
    yield "find"
    await pilot.press("escape", "ctrl+p", *"branch")
    await until_text(pilot, "the versions that /retry and /edit left")
    yield "palette"
    await pilot.press("escape")
    await until(pilot, lambda: not isinstance(app.screen, CommandPalette))
    await pilot.press("ctrl+l")


@pytest.mark.filterwarnings("ignore:\\s*Can not relate snapshot")
def test_the_question_of_a_message_that_is_too_long_looks_as_it_did(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(turn.Turn, "ttft", 0.612)
    app, _ = chat_app(
        Script(ANSWER), Script(fails=PromptTooLongError("too long", "use --ctx", n_tokens=9000, ctx=8192))
    )
    app.theme = DARK.name
    app.animation_level = "none"

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "What is a KV cache?")
        await send(pilot, "And what of paged attention?")
        await until_text(pilot, "This message does not fit")
        await until(pilot, lambda: not app.screen.deaf)  # type: ignore[attr-defined]
        await pilot.pause()
        assert screen_text(app) + "\n" == snapshot(name="too-long-80x24", extension_class=Text)

    drive(app, steps, SMALL)


@pytest.mark.filterwarnings("ignore:\\s*Can not relate snapshot")
def test_tools_requests_and_long_files_look_as_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "server.log").write_text("\n".join(f"line {number} is fine" for number in range(1, 90_001)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(long_text, "reading_speed", lambda *_: None)
    app, _ = chat_app()
    app.theme = DARK.name
    app.animation_level = "none"

    async def steps(pilot: Pilot[Any]) -> None:
        async for screen in through_tools(pilot):
            await pilot.pause()
            assert screen_text(app) + "\n" == snapshot(name=f"{screen}-80x24", extension_class=Text)

    drive(app, steps, SMALL)


async def through_tools(pilot: Pilot[Any]) -> AsyncIterator[str]:
    """Through what lets a model, other programs and long files in; at each name its screen is there."""
    await ready(pilot)
    await until_text(pilot, "not kept")  # which is found out while idle
    await send(pilot, "/tools")
    await until_text(pilot, "fetch_url")
    yield "tools"
    await pilot.press("a")
    await until_text(pilot, "Name of an MCP server")
    yield "add-server"
    await pilot.press("escape", "escape")
    await send(pilot, "/requests")
    await until_text(pilot, "Other programs cannot ask")
    yield "requests"
    await pilot.press("escape")
    await send(pilot, "/read server.log Which line is odd?")
    await until_text(pilot, "parts, ")
    yield "long-file"
    await pilot.press("escape")
    await until(pilot, lambda: chat_screen(pilot).composer.editor.text == "Which line is odd?")
    await pilot.press("ctrl+u")
    await send(pilot, "/token")
    await until_text(pilot, "Token for Hugging Face")
    yield "token"


@pytest.mark.parametrize(
    "look",
    [pytest.param(look, id=name, marks=[pytest.mark.slow] if name != "80x24" else []) for name, look in LOOKS.items()],
)
@pytest.mark.filterwarnings("ignore:\\s*Can not relate snapshot")  # a name has one file for all tests
def test_the_screens_look_as_they_did(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    known_machine(monkeypatch)
    monkeypatch.setattr(first_run, "usual_threads", lambda: 8)
    monkeypatch.setattr(session, "_known_rates", lambda: RATES)
    monkeypatch.setattr(turn.Turn, "ttft", 0.612)
    monkeypatch.setattr(prompt_library, "prompt_folder", lambda: PurePosixPath("/home/me/.config/localrun/prompts"))
    monkeypatch.setattr(settings_screen, "config_file", lambda: PurePosixPath("/home/me/.config/localrun/config.toml"))
    (folder := tmp_path / "letters").mkdir()
    (folder / "notes.txt").write_text("to be attached")
    monkeypatch.chdir(folder)
    if not look.colour:
        monkeypatch.setenv("NO_COLOR", "1")
    app, _ = chat_app(Script(ANSWER), choose=lambda: None)
    app.theme = look.theme
    app.animation_level = "none"
    columns, rows = look.size

    async def steps(pilot: Pilot[Any]) -> None:
        async for screen in walk(app, pilot):
            await pilot.pause()
            name = f"{screen}-{columns}x{rows}"
            assert screen_text(app) + "\n" == snapshot(name=name, extension_class=Text)
            if screen in look.pictures:
                assert picture(app) == snapshot(name=name, extension_class=Picture)

    with using("generic"):  # others keep scales beside keys and values: what models take is shown
        drive(app, steps, look.size)


def picture(app: LocalrunApp) -> str:
    """The screen as SVG, the same whenever the same is on it."""
    return IDS.sub("screen", FONTS.sub("", app.export_screenshot(simplify=True)))

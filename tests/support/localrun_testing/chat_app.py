"""The whole app with a scripted engine, chats in memory or in a folder, and a model that loads at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Static

from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice
from localrun.hub.disk.stored import StoredModel
from localrun_testing.pilots import until
from localrun_testing.scripted_client import Script, ScriptedClient, opener
from localrun_tui.app import LocalrunApp
from localrun_tui.screens.chat.chat_screen import ChatScreen
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.screens.chat.message_view import MessageView

CHOICE = ModelChoice(StoredModel("qwen3-4b", "Q4_K_M", Path("/models/qwen3-4b.gguf"), 1, "gguf", "models"), "Q4_K_M")
ENDS = Script(never_ends=True)  # says Hello! and stays until it is stopped


def chat_app(
    *scripts: Script,
    client: ScriptedClient | None = None,
    folder: Path | None = None,
    choose: Callable[[], ModelChoice | None] = lambda: CHOICE,
    **opening: Any,
) -> tuple[LocalrunApp, ScriptedClient]:
    """The app, and the engine behind it."""
    client = client or ScriptedClient(list(scripts) or [Script()])
    return LocalrunApp(opener(client, **opening), lambda: ChatStore(folder), choose), client


def chat_screen(pilot: Pilot[Any]) -> ChatScreen:
    return next(screen for screen in pilot.app.screen_stack if isinstance(screen, ChatScreen))


def views(pilot: Pilot[Any]) -> list[MessageView]:
    """The messages that are shown."""
    return chat_screen(pilot).transcript.views


def sources(pilot: Pilot[Any]) -> list[str]:
    """Their texts as they were written."""
    return [view.source for view in views(pilot)]


async def live_view(pilot: Pilot[Any]) -> MessageView:
    """The answer on its way, once it is on the screen."""
    path = chat_screen(pilot).path
    await until(pilot, lambda: path.live and path.live.view.size)
    assert path.live is not None
    return path.live.view


def text_of(view: MessageView, width: int = 76) -> str:
    return "\n".join(line.plain for line in view.lines(width))


def notice(pilot: Pilot[Any]) -> str:
    """The line above the composer; empty when there is none."""
    widget = chat_screen(pilot).query_one("#notice", Static)
    return str(widget.content) if widget.display else ""


async def ready(pilot: Pilot[Any]) -> None:
    """Wait until the model is there."""
    await until(pilot, lambda: chat_screen(pilot).session.info)


async def type_text(pilot: Pilot[Any], text: str) -> None:
    """What typing `text` does, without waiting for each key."""
    chat_screen(pilot).query_one(Editor).insert(text)
    await pilot.pause()


async def send(pilot: Pilot[Any], text: str) -> None:
    chat_screen(pilot).query_one(Editor).focus()
    await type_text(pilot, text)
    await pilot.press("enter")
    await pilot.pause()


async def ask(pilot: Pilot[Any], text: str) -> None:
    """Send a message and wait until its answer is there, and settled on the screen."""
    screen = chat_screen(pilot)
    before = screen.session.turn
    await send(pilot, text)
    await until(pilot, lambda: screen.session.turn is not before and not screen.session.answering)
    await until(pilot, lambda: screen.path.live is None)

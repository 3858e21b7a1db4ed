"""Draws the app's pictures of the README: a real chat with the built-in model of this checkout, seen in the app."""

import asyncio
import os
import tempfile
from collections.abc import Callable

from textual.pilot import Pilot

from localrun.client.choice import builtin
from localrun_tui.app import LocalrunApp
from localrun_tui.screens.chat.chat_screen import ChatScreen
from localrun_tui.start import open_client, open_store
from tools import ROOT

DOCS = ROOT / "docs"
QUESTIONS = ("Hello! What are you?", "Why is the second token faster than the first?", "What is a KV cache?")
SIZE = (120, 36)
PICTURES = (("app-dark.svg", "localrun-dark"), ("app-light.svg", "localrun-light"))


def main() -> None:
    """Chat as a user would, with the inspector open, and write the pictures."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["LOCALRUN_HOME"] = home
        asyncio.run(draw())


async def draw() -> None:
    app = LocalrunApp(open_client, open_store, builtin)
    async with app.run_test(size=SIZE) as pilot:
        screen = app.screen
        assert isinstance(screen, ChatScreen)
        await wait_for(pilot, lambda: screen.session.info is not None)
        await pilot.press("ctrl+g")
        for question in QUESTIONS:
            await answer(pilot, screen, question)
        screen.set_focus(screen.composer.editor)
        await pilot.pause(1.0)
        for name, theme in PICTURES:
            app.theme = theme
            await pilot.pause(0.5)
            (DOCS / name).write_text(app.export_screenshot(simplify=True), encoding="utf-8")


async def answer(pilot: Pilot[None], screen: ChatScreen, question: str) -> None:
    """Ask, and wait until the answer is on the screen."""
    before = screen.session.turn
    screen.composer.editor.text = question
    screen.set_focus(screen.composer.editor)
    await pilot.press("enter")
    await wait_for(pilot, lambda: screen.session.turn is not before and screen.path.live is None)


async def wait_for(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    while not condition():
        await pilot.pause(0.05)


if __name__ == "__main__":
    main()

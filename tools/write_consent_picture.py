"""Draws docs/consent.svg: the app asks whether a tool may run.

The calls are written here, since the built-in model makes none; what they would do is real.
"""

import asyncio
import json
import os
import tempfile
from pathlib import Path

from localrun_testing.chat_app import chat_app, chat_screen, send
from localrun_testing.scripted_client import Script
from textual.pilot import Pilot

from localrun.base.events import ToolCall
from tools.write_screens import DOCS, wait_for

SIZE = (100, 30)
FOLDER = Path(tempfile.gettempdir(), "shop")
FILE = FOLDER / "prices.py"
CODE = '''"""Prices with tax."""

TAX = 0.19


def price(net: float) -> float:
    return net * (1 + TAX)
'''
READ = Script("I look at the file first.", calls=(ToolCall("c1", "read_file", json.dumps({"path": FILE.name})),))
EDIT = {"path": FILE.name, "old_text": "net * (1 + TAX)", "new_text": "round(net * (1 + TAX), 2)"}
WRITE = Script("It returns all digits. I round them.", calls=(ToolCall("c2", "edit_file", json.dumps(EDIT)),))


def main() -> None:
    """Ask as a user would, in a folder of its own, and write the picture."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["LOCALRUN_HOME"] = home
        FOLDER.mkdir()
        try:
            FILE.write_text(CODE)
            os.chdir(FOLDER)
            asyncio.run(draw())
        finally:
            os.chdir(home)
            FILE.unlink()
            FOLDER.rmdir()


async def draw() -> None:
    app, _ = chat_app(READ, WRITE)
    async with app.run_test(size=SIZE) as pilot:
        app.theme = "localrun-dark"
        await ask(pilot)
        await pilot.pause(0.5)
        (DOCS / "consent.svg").write_text(app.export_screenshot(simplify=True), encoding="utf-8")


async def ask(pilot: Pilot[None]) -> None:
    """Until the card for the edit is there and has the focus."""
    screen = chat_screen(pilot)
    await wait_for(pilot, lambda: screen.session.info is not None)
    await send(pilot, "/tools read,edit")
    await wait_for(pilot, lambda: bool(screen.session.tools.for_model))
    screen.session.tools.tools.folders.allow(FOLDER)
    await send(pilot, "Prices in prices.py should have two digits.")
    await wait_for(pilot, lambda: screen.pane.consent.display)
    await pilot.press("f6")
    pilot.app.clear_notifications()


if __name__ == "__main__":
    main()

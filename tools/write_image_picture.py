"""Draws docs/image.svg: an image is attached in the app, with its sizes and their costs.

The engine is one for tests, and its figures are those of Qwen3.5 4B on two cores.
"""

import asyncio
import os
import tempfile
from pathlib import Path

import numpy as np
from localrun_testing.chat_app import chat_app, chat_screen
from localrun_testing.scripted_client import ScriptedClient
from PIL import Image
from textual.pilot import Pilot

from localrun.base.views import SizeView
from localrun.chat.files import read_files
from tools.write_screens import DOCS, wait_for

SIZE = (100, 24)
WIDTH, HEIGHT = 1920, 1080
COSTS = {"small": SizeView(120, 2.4), "medium": SizeView(252, 5.1), "full": SizeView(1008, 23.0)}


def main() -> None:
    """Attach an image as a user would, and write the picture."""
    os.environ["COLORTERM"] = "truecolor"
    with tempfile.TemporaryDirectory() as home:
        os.environ["LOCALRUN_HOME"] = home
        path = Path(home, "evening.png")
        Image.fromarray(landscape()).save(path)
        asyncio.run(draw(path))


async def draw(path: Path) -> None:
    app, _ = chat_app(client=ScriptedClient(sizes=COSTS))
    async with app.run_test(size=SIZE) as pilot:
        app.theme = "localrun-dark"
        await attach(pilot, path)
        (DOCS / "image.svg").write_text(app.export_screenshot(simplify=True), encoding="utf-8")


async def attach(pilot: Pilot[None], path: Path) -> None:
    """Until the image is drawn, its costs are there and a question is typed."""
    screen = chat_screen(pilot)
    await wait_for(pilot, lambda: screen.session.info is not None)
    screen.composer.attached.take(read_files(path.name, path.parent, await screen.session.images()))
    screen.composer.editor.insert("Where might this be?")
    attached = screen.composer.attached
    await wait_for(pilot, lambda: attached.fold.picture.image is not None and bool(attached.costs))
    await pilot.pause(0.5)


def landscape() -> np.ndarray:
    """A sunset behind mountains, above a lake that mirrors them."""
    x, y = np.meshgrid(np.linspace(0, 1, WIDTH), np.linspace(0, 1, HEIGHT))
    shore = 0.62
    height = np.where(y > shore, 2 * shore - y, y)  # the lake is the sky upside down
    low, high = np.array([250.0, 150, 60]), np.array([40.0, 60, 130])
    share = np.clip(height / shore, 0, 1)[..., None] ** 1.4
    sky = high + (low - high) * share
    sun = ((x - 0.63) * WIDTH / HEIGHT) ** 2 + (height - 0.42) ** 2 < 0.006
    sky[sun] = (255, 240, 190)
    ridges = ((0.42, 5.0, 0.6, (88, 62, 96)), (0.5, 8.0, 2.1, (52, 40, 72)), (0.56, 13.0, 4.4, (28, 26, 48)))
    for top, waves, phase, colour in ridges:
        ridge = top + 0.05 * np.sin(waves * x + phase) + 0.03 * np.sin(2.7 * waves * x + 2 * phase)
        sky[height > ridge] = colour
    dim = np.where(y > shore, 0.72, 1.0)[..., None]
    picture: np.ndarray = (sky * dim).astype(np.uint8)
    return picture


if __name__ == "__main__":
    main()

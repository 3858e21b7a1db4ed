"""The main screens as text, compared with the files in `snapshots`.

    SNAPSHOTS=write python -m pytest tests/tui/test_snapshots.py

writes these files anew, after a look at what changed.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, ready
from localrun_testing.model_screens import known_machine
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until_text
from localrun_testing.scripted_client import ANSWER, Script
from localrun_tui import first_run, settings_screen
from localrun_tui.app import LocalrunApp
from localrun_tui.download import Download
from textual.pilot import Pilot

from localrun.base.errors import HubError

FOLDER = Path(__file__).parent / "snapshots"
WRITE = os.environ.get("SNAPSHOTS") == "write"
MIB, GIB = 1 << 20, 1 << 30
CUT = HubError("the connection was cut five times", "check the network, then press r")
DOWNLOADS = [
    Download("a", "qwen3-4b", "Qwen/Qwen3-4B-GGUF", "Q4_K_M", "running", 900 * MIB, 2400 * MIB, rate=22e6),
    Download("b", "llama-3.1-8b", "org/llama", "Q4_K_M", "queued", 0, 5 * GIB),
    Download("c", "gemma-3-4b", "org/gemma", "Q8_0", "failed", 100 * MIB, 4 * GIB, error=CUT),
    Download("d", "smollm3", "org/smollm", "Q8_0", "done", 3 * GIB, 3 * GIB),
]


async def walk(app: LocalrunApp, pilot: Pilot[Any]) -> AsyncIterator[str]:
    """Through the app by keys; at each name its screen is there to be looked at."""
    await until_text(pilot, "room for")
    yield "first-run"
    await pilot.press("enter")
    await ready(pilot)
    await until_text(pilot, "is ready")
    yield "new-chat"
    await ask(pilot, "What is a KV cache?")
    await until_text(pilot, "1,216/1,474 reused")
    yield "chat"
    await pilot.press("ctrl+g")
    await until_text(pilot, "What helps")
    await until_text(pilot, "KV cache  1,500 of 8,192 tokens")
    yield "inspector"
    await pilot.press("ctrl+g", "ctrl+l")
    await until_text(pilot, "2 messages")
    yield "chats"
    await pilot.press("ctrl+l", "f1")
    await until_text(pilot, "New line")
    yield "help"
    await pilot.press("escape", "ctrl+s")
    await until_text(pilot, "System prompt")
    yield "this-chat"
    await pilot.press("escape")
    app.action_settings()
    await until_text(pilot, "temperature")
    yield "settings"
    await pilot.press("escape", "ctrl+o", "right")
    await until_text(pilot, "★ begin with it")
    yield "catalogue"
    await pilot.press("enter")
    await until_text(pilot, "working memory")
    yield "precision"
    await pilot.press("escape", "escape")
    app.downloads.all = lambda: DOWNLOADS  # type: ignore[method-assign]
    app.action_downloads()
    await until_text(pilot, "done and checked")
    yield "downloads"


@pytest.mark.parametrize(
    ("size", "no_colour"),
    [
        pytest.param(SMALL, False, id="80x24"),
        pytest.param(LARGE, False, id="120x40", marks=pytest.mark.slow),
        pytest.param(SMALL, True, id="80x24-without-colour", marks=pytest.mark.slow),
    ],
)
def test_the_screens_look_as_they_did(size: tuple[int, int], no_colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    monkeypatch.setattr(first_run, "cpu_limit", lambda: 8)
    monkeypatch.setattr(settings_screen, "config_file", lambda: PurePosixPath("/home/me/.config/localrun/config.toml"))
    if no_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    app, _ = chat_app(Script(ANSWER), choose=lambda: None)
    app.animation_level = "none"
    changed = []

    async def steps(pilot: Pilot[Any]) -> None:
        async for name in walk(app, pilot):
            await pilot.pause(0.05)
            text = screen_text(app) + "\n"
            file = FOLDER / f"{name}-{size[0]}x{size[1]}.txt"
            if WRITE and not no_colour:
                file.write_text(text, "utf-8")
            elif text != file.read_text("utf-8"):
                changed.append(f"{file.name} is now\n{text}")

    drive(app, steps, size)
    assert not changed, "\n".join(changed)

"""Keys that come faster than the app acts on them, as those of a fast typist: each acts where the last one led."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready
from localrun_testing.pilots import LARGE, burst, drive, until, until_text
from textual.pilot import Pilot

from localrun.base.settings import read_settings
from localrun_tui import keys_in_order
from localrun_tui.state.store_thread import StoreThread


def title(pilot: Pilot[Any]) -> str:
    chat = chat_screen(pilot).session.chat
    return chat.title if chat else ""


@pytest.mark.parametrize(
    "keys",
    [
        ["f3", *"/temper", "enter", "enter", *"0.5", "enter"],
        [*"/settings", "enter", *"/temper", "down", "enter", *"0.5", "enter"],
        ["ctrl+p", *"settings", "enter", *"/temper", "enter", "enter", *"0.5", "enter"],
    ],
)
def test_a_setting_is_found_and_changed_in_one_burst(keys: Sequence[str], home: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await burst(pilot, keys)
        await until(pilot, lambda: read_settings().temperature == 0.5)

    drive(app, steps)


@pytest.mark.parametrize(
    "keys",
    [
        ["ctrl+l", "r", "ctrl+u", *"Suns", "enter"],
        ["f2", "ctrl+u", *"Suns", "enter"],
        [*"/title", "enter", "ctrl+u", *"Suns", "enter"],
    ],
)
def test_a_chat_is_renamed_in_one_burst(keys: Sequence[str], tmp_path: Path) -> None:
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "about the moon")
        await burst(pilot, keys)
        await until(pilot, lambda: title(pilot) == "Suns")

    drive(app, steps)


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        (["ctrl+t", *"notes"], "notes"),
        (["ctrl+o", "right", "right", *"/deepseek"], "deepseek"),
        (["ctrl+f", *"moons"], "moons"),
        (["f1", "escape", *"hello"], "hello"),
        (["ctrl+s", *"Be brief"], "Be brief"),
        ([*"/tools", "enter", "a", *"files npx"], "files npx"),
        (["ctrl+l", "slash", *"moons", "escape", *"stars"], "stars"),
        (["f8", "escape", "ctrl+o", "right", "right", *"/moons"], "moons"),
    ],
)
def test_what_is_typed_behind_a_key_stands_where_the_key_leads(keys: Sequence[str], shown: str, home: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await burst(pilot, keys)
        await until_text(pilot, shown)

    drive(app, steps, LARGE)


def test_an_error_while_keys_wait_ends_the_app_with_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app()

    async def fail(pump: object) -> None:
        raise ValueError("no such pump")

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        monkeypatch.setattr(keys_in_order, "_all_done", fail)
        await burst(pilot, ["f1"])
        await until(pilot, lambda: app.crash)

    with pytest.raises(ValueError, match="no such pump"):
        drive(app, steps)
    assert "an error of its own: ValueError in test_bursts.py" in app.crash


def test_a_disk_that_does_not_answer_holds_keys_no_longer_than_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "about the moon")
        monkeypatch.setattr(StoreThread, "run", lambda *_: asyncio.Event().wait())
        with patch.object(keys_in_order, "_PATIENCE", 0.05):
            await burst(pilot, ["f2", *"typed"])
            await until(pilot, lambda: chat_screen(pilot).composer.editor.text == "typed")

    drive(app, steps)

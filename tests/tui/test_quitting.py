"""Quitting asks first where a chat could not be written to disk."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, send
from localrun_testing.pilots import drive, screen_text, until, until_text
from textual.pilot import Pilot

from localrun.chat import file
from localrun.chat.journal import ChatStore


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Chats have no room on disk until this is undone."""

    def full(fd: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(file, "append", full)
    return monkeypatch


@pytest.mark.usefixtures("full_disk")
def test_a_chat_that_is_not_on_disk_is_not_lost_by_quitting(tmp_path: Path) -> None:
    app, _ = chat_app(folder=tmp_path / "chats")
    exported = tmp_path / "saved.md"

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "why is the sky blue?")
        await pilot.press("ctrl+n")
        await ask(pilot, "and the sea?")
        await pilot.press("ctrl+q")
        await until_text(pilot, "/save FILE")
        assert "“why is the sky blue?”" in screen_text(app)
        assert "“and the sea?”" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is chat_screen(pilot))
        await send(pilot, f"/save {exported}")
        await until(pilot, exported.exists)
        await send(pilot, "/bye")
        await until_text(pilot, "“why is the sky blue?”")
        assert "“and the sea?”" not in screen_text(app)
        await pilot.press("y")

    drive(app, steps)
    assert app.return_code == 0
    assert "and the sea?" in exported.read_text("utf-8")


@pytest.mark.usefixtures("full_disk")
def test_a_chat_that_was_saved_elsewhere_is_asked_about_only_once_more_was_said(tmp_path: Path) -> None:
    app, _ = chat_app(folder=tmp_path / "chats")

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "why is the sky blue?")
        await send(pilot, f"/save {tmp_path / 'one.md'}")
        await until_text(pilot, "written to")
        await ask(pilot, "and the sea?")
        await pilot.press("ctrl+q")
        await until_text(pilot, "not on disk")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is chat_screen(pilot))
        await send(pilot, f"/save {tmp_path / 'two.md'}")
        await until(pilot, (tmp_path / "two.md").exists)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)

    drive(app, steps)
    assert "and the sea?" in (tmp_path / "two.md").read_text("utf-8")


def test_once_the_disk_has_room_again_quitting_writes_the_chat_and_asks_nothing(
    tmp_path: Path, full_disk: pytest.MonkeyPatch
) -> None:
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "why is the sky blue?")
        await until_text(pilot, "not kept")
        full_disk.undo()
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)

    drive(app, steps)
    (summary,) = ChatStore(tmp_path).summaries()
    assert (summary.title, summary.n_messages) == ("why is the sky blue?", 2)

"""A module that drives the app or a terminal holds tests of screens (`localrun_testing.run_again`)."""

import os
from pathlib import Path

import pytest
from textual._compositor import Compositor
from textual.widget import Widget

from localrun_tui.screens.chat import chat_screen, message_view
from localrun_tui.state import title_giver
from localrun_tui.widgets.compositor import Growing

HERE = Path(__file__).parent
DRIVERS = {"drive", "Terminal"}  # of localrun_testing.pilots and localrun_testing.terminal


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.is_relative_to(HERE) and isinstance(item, pytest.Function) and DRIVERS & set(vars(item.module)):
        item.add_marker(pytest.mark.screen)


@pytest.fixture(autouse=True)
def chats_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy makes a test long enough for the app to ask the model for a title in the middle of it."""
    monkeypatch.setattr(title_giver, "IDLE", 86_400.0)


@pytest.fixture(autouse=True)
def painted_by_textual(monkeypatch: pytest.MonkeyPatch) -> None:
    """With LOCALRUN_FULL_REDRAW Textual also lays out and renders itself, without what is faster here."""
    if os.environ.get("LOCALRUN_FULL_REDRAW"):
        monkeypatch.setattr(chat_screen, "LeanCompositor", Compositor)
        monkeypatch.setattr(message_view, "paint_now", Widget.refresh)
        monkeypatch.setattr(Growing, "is_plain", False)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the app is started, with one file in it."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "notes.txt").write_text("buy milk")
    monkeypatch.chdir(folder)
    return folder

"""A module that drives the app or a terminal holds tests of screens (`localrun_testing.run_again`)."""

from pathlib import Path

import pytest

from localrun_tui.state import title_giver

HERE = Path(__file__).parent
DRIVERS = {"drive", "Terminal"}  # of localrun_testing.pilots and localrun_testing.terminal


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.is_relative_to(HERE) and isinstance(item, pytest.Function) and DRIVERS & set(vars(item.module)):
        item.add_marker(pytest.mark.screen)


@pytest.fixture(autouse=True)
def chats_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy makes a test long enough for the app to ask the model for a title in the middle of it."""
    monkeypatch.setattr(title_giver, "IDLE", 86_400.0)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the app is started, with one file in it."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "notes.txt").write_text("buy milk")
    monkeypatch.chdir(folder)
    return folder

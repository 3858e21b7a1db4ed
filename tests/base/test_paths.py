"""Where files go: LOCALRUN_HOME moves everything, and nothing writable is an answer, not an error."""

import os
from pathlib import Path
from typing import get_args

import pytest
from platformdirs import macos, windows

from localrun.base.paths import FolderKind, folder, what_is_not_kept, writable_folder

KINDS: tuple[FolderKind, ...] = get_args(FolderKind)


def test_localrun_home_holds_everything(home: Path) -> None:
    assert folder("config") == home
    assert {folder(kind) for kind in KINDS} == {home, home / "chats", home / "models", home / "cache", home / "logs"}
    assert not home.exists(), "asking where things are makes nothing"


def test_localrun_home_may_be_relative_or_start_with_a_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCALRUN_HOME", "here")
    assert folder("config") == tmp_path / "here"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALRUN_HOME", "~/there")
    assert folder("cache") == tmp_path / "there" / "cache"


def test_a_writable_folder_is_made_and_private(home: Path) -> None:
    made = writable_folder("chats")
    assert made == home / "chats"
    assert made.stat().st_mode & 0o777 == 0o700
    assert list(made.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_writable_is_said_not_raised(kind: FolderKind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    monkeypatch.setenv("LOCALRUN_HOME", str(in_the_way))
    assert writable_folder(kind) is None
    assert str(in_the_way) in what_is_not_kept(kind)


def test_without_a_home_folder_nothing_is_kept_and_nothing_is_written_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOCALRUN_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as without HOME and a user entry
    assert all(folder(kind) is None and writable_folder(kind) is None for kind in KINDS)
    assert "HOME" in what_is_not_kept("config")
    assert list(tmp_path.iterdir()) == []


def test_without_localrun_home_the_platform_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LOCALRUN_HOME")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = [folder(kind) for kind in KINDS]
    assert all(path is not None and path.is_relative_to(tmp_path) and "localrun" in str(path) for path in found)
    assert len(set(found)) == len(KINDS)


@pytest.mark.parametrize(("kind", "closed"), [("chats", True), ("cache", True), ("logs", True), ("models", False)])
def test_a_folder_that_holds_what_was_said_is_closed_to_others(home: Path, kind: FolderKind, closed: bool) -> None:
    place = home / kind
    place.mkdir(parents=True)
    place.chmod(0o755)
    assert writable_folder(kind) == place
    assert place.stat().st_mode & 0o777 == (0o700 if closed else 0o755)


@pytest.mark.parametrize("system", [macos.MacOS, windows.Windows], ids=["macos", "windows"])
def test_other_systems_keep_each_kind_in_a_place_of_its_own(system: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCALRUN_HOME")
    monkeypatch.setattr("localrun.base.paths.PlatformDirs", system)
    monkeypatch.setattr(windows, "get_win_folder", lambda name: f"/C/Users/me/{name}")
    home = Path(os.environ["HOME"]) / "Library" if system is macos.MacOS else Path("/C/Users/me/CSIDL_LOCAL_APPDATA")
    folders = [folder(kind) for kind in KINDS]
    assert len(set(folders)) == len(KINDS)
    assert all(one is not None and one.is_relative_to(home) and "localrun" in one.parts for one in folders)

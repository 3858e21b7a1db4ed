"""Files of our own: private, and whole or not at all."""

import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.full_disk import full_disk

from localrun.base import files, lock
from localrun.base.files import make_private, remove_unfinished, replace_file, write_whole

posix_only = pytest.mark.skipif(os.name != "posix", reason="windows has no such modes")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@posix_only
@pytest.mark.parametrize(("before", "after"), [(0o755, 0o700), (0o777, 0o700), (0o700, 0o700), (0o540, 0o500)])
def test_only_the_rights_of_others_are_taken(tmp_path: Path, before: int, after: int) -> None:
    tmp_path.chmod(before)
    make_private(tmp_path)
    assert mode(tmp_path) == after
    tmp_path.chmod(0o700)


def test_a_missing_file_is_ignored(tmp_path: Path) -> None:
    make_private(tmp_path / "nothing")


@posix_only
def test_a_file_is_replaced_whole_and_behind_its_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    before = os.umask(0)
    try:
        write_whole(tmp_path / "link", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert mode(tmp_path / "real") == 0o600


@posix_only
def test_a_link_to_a_device_or_pipe_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "pipe").is_fifo()
    write_whole(tmp_path / "pipe", "new")
    for name in ("link", "pipe"):
        assert stat.S_ISREG((tmp_path / name).lstat().st_mode)
        assert (tmp_path / name).read_text() == "new"


def test_a_failed_write_keeps_the_old_file_and_leaves_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space"):
        write_whole(tmp_path / "file", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


@posix_only
@pytest.mark.parametrize("content", ["new" * 5000, b"new" * 5000])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, content: str | bytes) -> None:
    (tmp_path / "file").write_text("old")
    with full_disk(), pytest.raises(OSError, match="too large"):
        write_whole(tmp_path / "file", content)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_text_that_has_no_encoding_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "file", "\udcff")
    assert not list(tmp_path.iterdir())


def test_only_old_files_with_the_name_of_an_unfinished_one_are_removed(tmp_path: Path) -> None:
    old = time.time() - 2 * 3600
    for name in ("tmpabcd_123", "tmpabcd_124", "tmp.txt", "weights.json"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (old, old))
    (tmp_path / "tmpabcd_124").write_text("being written now")
    (tmp_path / "tmpabcd_125").mkdir()
    os.utime(tmp_path / "tmpabcd_125", (old, old))
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tmp.txt", "tmpabcd_124", "tmpabcd_125", "weights.json"]
    remove_unfinished(tmp_path / "nothing")


class Calls(list[tuple[object, ...]]):
    """A module of another system: what is called is written down."""

    LK_NBLCK, LK_UNLCK, F_FULLFSYNC = "lock", "unlock", "full sync"
    refuses = False

    def locking(self, fd: int, what: str, n: int) -> None:
        place = os.lseek(fd, 0, os.SEEK_CUR)
        if place >= 1 << 31:
            raise OSError(22, "Invalid argument")  # the C library of Windows asks for it in a number of 32 bits
        self.append((what, place > 1 << 30, n, os.fstat(fd).st_size))

    def fcntl(self, fd: int, what: str) -> None:
        self.append((what,))
        if self.refuses:
            raise OSError(45, "Operation not supported")


def test_where_appending_is_no_one_step_others_wait_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    monkeypatch.setattr(lock, "msvcrt", calls)
    fd = os.open(tmp_path / "a", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    files.append(fd, b"one")
    files.append(fd, b"two")
    os.close(fd)
    assert (tmp_path / "a").read_bytes() == b"onetwo"
    assert calls == [("lock", True, 1, 0), ("unlock", True, 1, 3), ("lock", True, 1, 3), ("unlock", True, 1, 6)]
    reading = os.open(tmp_path / "a", os.O_RDONLY)
    with pytest.raises(OSError, match="Bad file descriptor"):
        files.append(reading, b"x")
    os.close(reading)
    assert calls[-1][0] == "unlock"


@pytest.mark.parametrize("refuses", [False, True])
def test_where_fsync_stops_at_the_drives_cache_the_drive_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    calls, synced = Calls(), list[int]()
    calls.refuses = refuses
    monkeypatch.setattr(files, "fcntl", calls)
    monkeypatch.setattr(os, "fsync", synced.append)
    with open(tmp_path / "a", "wb") as file:
        files.sync(file.fileno())
        assert calls == [("full sync",)]
        assert synced == ([file.fileno()] if refuses else [])


@pytest.mark.parametrize(("n_busy", "system"), [(2, "win32"), (99, "win32"), (1, "linux")])
def test_windows_is_asked_again_while_another_program_has_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_busy: int, system: str
) -> None:
    replace, busy, waited = os.replace, [PermissionError(13, "in use")] * n_busy, list[float]()

    def refuse(fresh: Path, path: Path) -> None:
        if busy:
            raise busy.pop()
        replace(fresh, path)

    monkeypatch.setattr("os.replace", refuse)
    monkeypatch.setattr("time.sleep", waited.append)
    monkeypatch.setattr(sys, "platform", system)
    (tmp_path / "fresh").write_text("new")
    if n_busy == 2:
        replace_file(tmp_path / "fresh", tmp_path / "file")
        assert (tmp_path / "file").read_text() == "new"
        assert len(waited) == 2
    else:
        with pytest.raises(PermissionError, match="in use"):
            replace_file(tmp_path / "fresh", tmp_path / "file")
        assert 1 < sum(waited) < 5 if system == "win32" else not waited

"""Small files that may be anything: named, refused, and never waited for."""

import os
import socket
from pathlib import Path

import pytest

from localrun.base.small_file import NotAFileError, TooBigError, open_regular, read_small

posix = pytest.mark.skipif(os.name != "posix", reason="pipes, devices and links of Unix")


def test_a_file_is_read_to_its_end_and_no_further_than_allowed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 3_000_000)
    assert read_small(path, 3_000_000) == b"x" * 3_000_000
    with pytest.raises(TooBigError, match="3,000,000 bytes, where at most 2,999,999 are sensible"):
        read_small(path, 2_999_999)


@posix
def test_a_device_or_pipe_is_refused_by_kind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        kinds = {"pipe": "a pipe", "zero": "a device", "folder": "a folder", "socket": "a socket"}
        for name, kind in kinds.items():
            with pytest.raises(NotAFileError, match=f"this is {kind}, not a file"):
                read_small(tmp_path / name, 100)
    with pytest.raises(FileNotFoundError):
        read_small(tmp_path / "nothing", 100)


@posix
def test_a_link_is_followed_unless_the_caller_expects_none(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("f")
    assert read_small(tmp_path / "link", 100) == b"abc"
    with pytest.raises(NotAFileError, match="this is a link, not a file"):
        open_regular(tmp_path / "link", follow_links=False)


@posix
def test_a_pipe_put_in_place_of_the_file_meanwhile_is_found_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "f").write_bytes(b"abc")
    looked = os.stat(tmp_path / "f")
    monkeypatch.setattr(os, "stat", lambda *_, **__: looked)
    with pytest.raises(NotAFileError, match="a pipe"):
        read_small(tmp_path / "pipe", 100)


def test_a_file_that_grows_while_it_is_read_is_still_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 1000)
    before = os.stat(path)
    path.write_bytes(b"x" * 5000)
    monkeypatch.setattr(os, "fstat", lambda _: before)
    with pytest.raises(TooBigError, match="more than 4,000 bytes"):
        read_small(path, 4000)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux only")
def test_a_file_that_says_it_is_empty_is_read(tmp_path: Path) -> None:
    assert b"VmHWM" in read_small(Path("/proc/self/status"), 1 << 16)

"""Files in which something was noted: whatever lies in their place, it is ignored and written anew."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from localrun.base import lock, state_file
from localrun.base.state_file import change_state, read_state
from localrun.fit.disk_rate import disk_rate
from localrun.fit.machine_rates import known_rates, read_machine, write_machine
from localrun.formats.files import stamp_at
from localrun.hub.disk.library import mark_used, scan
from localrun.storage import identity
from localrun.storage.label import NO_LABEL, Label, read_label, write_label
from localrun.storage.trim import known_total, note_total

DAMAGED: dict[str, bytes] = {
    "empty": b"",
    "no object": b"[1, 2]",
    "nested": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "lists": b"[" * 100_000,
    "many digits": b'{"a": %b}' % (b"9" * 10_000),
    "five hundred digits": b'{"a": %b}' % (b"9" * 500),
    "infinite": b'{"a": 1e999}',
    "no number": b'{"a": NaN}',
    "no text": b'{"a": "\xff\xfe"}',
    "half": b'{"a": 1',
    "large": b"{" + b" " * state_file.MAX_BYTES + b"}",
    "zeros": bytes(100),
}


def in_place(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def special(path: Path) -> None:
    """A pipe, which hangs whoever opens it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_empty_and_rewritten(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.json"
    in_place(path, data)
    assert read_state(path) == {}
    change_state(path, lambda known: {**known, "b": 1})
    assert read_state(path) == {"b": 1}


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""])
def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path, mark: bytes) -> None:
    in_place(tmp_path / "a.json", mark + b'{"a": 1, "b": 1234567890123456789012345}')
    assert read_state(tmp_path / "a.json")["a"] == 1


def _used(home: Path) -> None:
    scan()
    mark_used(home)
    scan()


def _known(home: Path) -> None:
    file = home / "model"
    file.write_bytes(b"GGUF")
    before = stamp_at(file)
    identity._remember(str(file), before, "ab")
    assert identity._read_known()[str(file)] == [list(before.exact), "ab"]


def _machine(home: Path) -> None:
    known_rates()
    disk_rate()
    write_machine("key", {"read_bytes": 1.0})
    assert read_machine()["key"] == {"read_bytes": 1.0}
    known_rates()


def _label(home: Path) -> None:
    folder = home / "cache"
    assert read_label(folder) == NO_LABEL
    write_label(folder, Label("m", "/m"))
    assert read_label(folder) == Label("m", "/m")


def _total(home: Path) -> None:
    assert known_total(home / "cache") is None
    note_total(home / "cache", 5, looked=True)
    assert known_total(home / "cache") == 5


STATES: dict[str, Callable[[Path], None]] = {
    "last-used.json": _used,
    "weights.json": _known,
    "machine.json": _machine,
    "label.json": _label,
    "total": _total,
}


@pytest.mark.skipif(os.name != "posix", reason="windows has no such pipes")
@pytest.mark.parametrize("name", STATES)
def test_writing_state_never_raises(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("localrun.fit.disk_rate.probe", lambda folder: 1e9)
    path = home / "cache" / name
    for data in DAMAGED.values():
        in_place(path, data)
        STATES[name](home)
        assert path.stat().st_size
    special(path)
    STATES[name](home)
    assert path.is_file()
    path.unlink()
    path.symlink_to("/dev/zero")
    STATES[name](home)
    assert not path.is_symlink()
    assert path.is_file()


@pytest.mark.parametrize("row", [5, "x", [], {}, {"measured_at": "x"}, {"read_bytes": [], "measured_at": {}}])
def test_rows_of_another_shape_say_nothing(home: Path, monkeypatch: pytest.MonkeyPatch, row: object) -> None:
    monkeypatch.setattr("localrun.fit.machine_rates._key", lambda: "here")
    monkeypatch.setattr("localrun.fit.disk_rate.probe", lambda folder: 1e9)
    in_place(home / "cache" / "machine.json", b"")
    disk = f"disk {(home / 'cache').stat().st_dev}"
    in_place(home / "cache" / "machine.json", json.dumps({"here": row, disk: row}).encode())
    assert known_rates() is None
    disk_rate()
    for name, value in (("path", 5), ("numerics", "x"), ("model", row)):
        in_place(home / "cache" / "label.json", json.dumps({"model": "m", name: value, "later": 1}).encode())
        assert isinstance(read_label(home / "cache").model, str)
        read_label(home / "cache").outlives(NO_LABEL)
    in_place(home / "cache" / "last-used.json", json.dumps({str(home): row, "x": -1, "y": 1e30}).encode())
    assert all(model.last_used is None for model in scan())


def test_concurrent_changes_are_all_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one stops between reading and writing, until the second waits for it."""
    path, waits = tmp_path / "a.json", threading.Event()
    second = threading.Thread(target=change_state, args=(path, lambda known: {**known, "second": 2}))
    wait_for = lock._wait_for

    def noted(fd: int) -> None:
        if threading.current_thread() is second:
            waits.set()
        wait_for(fd)

    def slow(known: dict[str, int]) -> dict[str, int]:
        second.start()
        assert waits.wait(60)
        return {**known, "first": 1}

    monkeypatch.setattr(lock, "_wait_for", noted)
    change_state(path, slow)
    second.join()
    assert read_state(path) == {"first": 1, "second": 2}


def test_a_figure_that_is_no_number_is_not_noted(tmp_path: Path) -> None:
    change_state(tmp_path / "a.json", lambda known: {"a": 1})
    change_state(tmp_path / "a.json", lambda known: {**known, "b": float("inf")})
    assert read_state(tmp_path / "a.json") == {"a": 1}

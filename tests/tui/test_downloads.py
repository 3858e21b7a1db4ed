"""The queue of downloads: paused, resumed, cut, refused, left behind by an earlier run, and shown."""

import errno
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from localrun_testing.chat_app import chat_app, chat_screen, ready
from localrun_testing.fake_hub import FakeHub, FakeRepo
from localrun_testing.model_screens import ScreenApp, hub_with_models, known_machine
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.stub_gguf import stub_gguf
from textual.pilot import Pilot
from textual.screen import Screen

from localrun.base.errors import HubError
from localrun.base.settings import read_settings
from localrun.client.choice import ModelChoice
from localrun.hub.downloads import partial, transfer
from localrun.hub.downloads.progress import Meter
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.remote.preview import find_on_hub, preview
from localrun.hub.resolve import resolve
from localrun_tui.screens.downloads.download import Download
from localrun_tui.screens.downloads.download_work import find_unfinished
from localrun_tui.screens.downloads.downloads import DownloadsScreen, badge_text, duration, items_of
from localrun_tui.screens.downloads.downloads_queue import Downloads
from localrun_tui.screens.downloads.queue_file import forget, note_queued
from localrun_tui.state.process_mark import own_mark

MIB = 1 << 20
SLOW = 1e4  # bytes a second: nothing ends by itself while a test looks


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """Besides the small models one of 12 MiB. 1.5 MiB of each answer come at once, the rest at the rate that is set."""
    known_machine(monkeypatch)
    monkeypatch.setattr(transfer, "RETRY_SECONDS", (0.05,) * 40)
    with hub_with_models(tmp_path, monkeypatch) as running:
        noise = random.Random(1).randbytes(12 * MIB)
        files = {name: stub_gguf(tmp_path, name) + noise for name in ("large-F16.gguf", "large-F32.gguf")}
        running.repos["org/large-GGUF"] = FakeRepo(files)
        running.fast_bytes = 3 * MIB // 2
        yield running


def start(downloads: Downloads, name: str, number: int = 0, then: Callable[[], object] = lambda: None) -> str:
    """Put a precision into the queue; gives its key. `then` happens between the look at it and the download."""
    wanted = find_on_hub(name)
    assert wanted is not None
    http = Http(read_access())
    found = preview(http, wanted)
    http.close()
    then()
    variant = found.variants[number]
    downloads.start(found, variant, variant.precision, 4096, "f16")
    download = downloads.find(wanted.repo, variant)
    assert download is not None
    return download.key


def test_paused_resumed_and_loaded(hub: FakeHub) -> None:
    hub.bytes_per_second = SLOW

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Nothing is being downloaded")
        key = start(app.downloads, "org/large-GGUF")
        start(app.downloads, "org/large-GGUF", 1)
        await until(pilot, lambda: app.downloads.all()[0].done >= MIB)
        await until_text(pilot, "iB/s")
        shown = screen_text(pilot.app)
        assert "waits for its turn" in shown
        assert "↓" not in shown  # the table says all of that
        assert "Choose" not in shown  # Enter does nothing with what is on its way
        await pilot.press("space")
        await until_text(pilot, "paused")
        await until_text(pilot, "Choose")
        hub.bytes_per_second = None
        await until(pilot, lambda: app.downloads.all()[1].stored)  # those behind it go on
        await pilot.press("space")
        await until(pilot, lambda: app.downloads.all()[0].stored)
        await until_text(pilot, "is here")
        assert app.downloads.get(key).stored.precision == "F16"  # type: ignore[union-attr]
        await pilot.press("enter")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(DownloadsScreen())
    drive(app, steps, LARGE)
    assert isinstance(app.answer, ModelChoice)
    assert (app.answer.precision, app.answer.ctx, app.answer.kv) == ("F16", 4096, "f16")
    assert resolve("org/large-GGUF:F16").path.read_bytes() == hub.repos["org/large-GGUF"].files["large-F16.gguf"]
    assert read_settings().model == "org/large-GGUF"  # the first that is pulled


def test_what_is_told_late_does_not_undo_a_pause(hub: FakeHub) -> None:
    """Told by the queue's thread while the app's own is busy, it is heard after what the app's own does then."""
    hub.bytes_per_second = SLOW

    async def steps(pilot: Pilot[Any]) -> None:
        key = start(app.downloads, "org/large-GGUF")
        await until(pilot, lambda: app.downloads.all()[0].state == "running")
        queue = app.downloads._queue
        assert queue is not None
        before = queue.job(1).done
        give_up = time.monotonic() + 30
        while queue.job(1).done == before and time.monotonic() < give_up:
            time.sleep(0.01)
        app.downloads.pause(key)
        await pilot.pause(0.1)
        assert app.downloads.all()[0].state == "paused"

    app = ScreenApp(DownloadsScreen())
    drive(app, steps)


def test_the_newest_download_is_highlighted(hub: FakeHub) -> None:
    hub.bytes_per_second = SLOW

    async def steps(pilot: Pilot[Any]) -> None:
        start(app.downloads, "org/large-GGUF")
        key = start(app.downloads, "org/large-GGUF", 1)
        screen = DownloadsScreen()
        await app.push_screen(screen)
        await until(pilot, lambda: screen.current is not None and screen.current.key == key)
        await pilot.press("up")
        await until(pilot, lambda: screen.current is not None and screen.current.key != key)

    app = ScreenApp(Screen())
    drive(app, steps, LARGE)


def test_quitting_during_a_download_says_what_becomes_of_it(hub: FakeHub) -> None:
    hub.bytes_per_second = SLOW
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        start(app.downloads, "org/large-GGUF")
        await pilot.press("ctrl+q")
        await until_text(pilot, "Quit? Downloads end with the app")
        assert "large-GGUF F16" in screen_text(pilot.app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is chat_screen(pilot))
        assert app.downloads.all()[0].active
        await pilot.press("ctrl+q")
        await until_text(pilot, "Quit? Downloads end with the app")
        await pilot.press("y")
        await until(pilot, lambda: not app.is_running)

    drive(app, steps)


def test_a_cut_network_is_waited_out_and_said(hub: FakeHub) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        start(app.downloads, "org/large-GGUF", then=lambda: hub.break_file("large-F16.gguf", "cut"))
        await until_text(pilot, "trying again")
        hub.trouble.clear()
        await until(pilot, lambda: app.downloads.all()[0].stored)
        assert not app.downloads.all()[0].note

    app = ScreenApp(DownloadsScreen())
    drive(app, steps, LARGE)
    assert resolve("org/large-GGUF:F16").path.read_bytes() == hub.repos["org/large-GGUF"].files["large-F16.gguf"]


def test_a_hub_that_falls_silent_is_said(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Meter, "WINDOW", 0.3)
    hub.bytes_per_second = 1.0

    async def steps(pilot: Pilot[Any]) -> None:
        start(app.downloads, "org/large-GGUF")
        await until(pilot, lambda: re.search(r"of 12\.2 MiB · no bytes for \d+ s", screen_text(pilot.app)))
        assert "no bytes for" in badge_text(app.downloads.all())
        hub.bytes_per_second = None
        await until(pilot, lambda: app.downloads.all()[0].stored)
        assert "no bytes for" not in screen_text(pilot.app)

    app = ScreenApp(DownloadsScreen())
    drive(app, steps, LARGE)


def test_a_failure_says_what_to_try_and_is_retried(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(partial, "allocate", full)

    async def steps(pilot: Pilot[Any]) -> None:
        start(app.downloads, "org/large-GGUF")
        await until_text(pilot, "What to try: free some space: Del in Models (Ctrl+O)")
        assert "is full" in screen_text(pilot.app)
        monkeypatch.undo()
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        await pilot.press("r")
        await until(pilot, lambda: app.downloads.all()[0].state in ("queued", "running", "done"))

    app = ScreenApp(DownloadsScreen())
    drive(app, steps, LARGE)


def test_what_an_earlier_run_left_is_offered_resumed_and_removed(hub: FakeHub) -> None:
    hub.bytes_per_second = SLOW

    async def first_run(pilot: Pilot[Any]) -> None:
        for number in (0, 1):
            key = start(first.downloads, "org/large-GGUF", number)
            await until(pilot, lambda key=key: (first.downloads.get(key) or Gone).done >= MIB)  # type: ignore[misc]
            if number == 0:
                await pilot.press("space")

    async def next_run(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "not finished last time")
        before = hub.sent("large-F16.gguf")
        assert hub.seen[-1:] == seen  # nothing is fetched unasked
        assert {one.precision for one in app.downloads.all()} == {"F16", "F32"}
        while app.downloads.all() and "F16" not in str(pilot.app.screen.current.file):  # type: ignore[attr-defined]
            await pilot.press("down")
        arrived = pilot.app.screen.current.done  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until(pilot, lambda: any(one.stored for one in app.downloads.all()))
        missing = len(hub.repos["org/large-GGUF"].files["large-F16.gguf"]) - arrived
        assert hub.sent("large-F16.gguf") - before <= missing + MIB
        while "F32" not in str(pilot.app.screen.current.file):  # type: ignore[attr-defined]
            await pilot.press("down")
        await pilot.press("d")
        await until_text(pilot, "Give up org/large-GGUF F32?")
        await pilot.press("y")
        await until_text(pilot, "are free again")

    first = ScreenApp(DownloadsScreen())
    drive(first, first_run)
    hub.bytes_per_second = None
    seen = hub.seen[-1:]
    app = ScreenApp(DownloadsScreen())
    drive(app, next_run, LARGE)
    assert not list(read_access().cache.rglob("*.localrun-part"))


Gone = Download("", "", "", "", "cancelled", 0, 0)


def test_words_for_numbers() -> None:
    one = replace(Gone, state="running", done=30, total=100, rate=10.0)
    assert badge_text([one, replace(one, state="queued", done=10)]) == "↓ 2 · 20 % · F8"
    assert badge_text([replace(one, state="failed", error=HubError("x"))]) == "↓ 1 failed · F8"
    assert badge_text([replace(one, state="done"), replace(one, state="unfinished")]) == "↓ 1 not finished · F8"
    assert badge_text([replace(one, state="done"), replace(one, state="cancelled")]) == ""
    assert one.seconds_left == 7.0
    assert replace(one, rate=0.0).seconds_left is None
    assert [duration(seconds) for seconds in (None, 7, 59.4, 60, 3599, 3660, 1e9)] == [
        *("", "7 s", "59 s", "1 min", "1 h 00", "1 h 01", "")
    ]


def test_what_waited_for_its_turn_when_the_app_was_killed_is_offered_again(home: Path) -> None:
    waits = Download("org/x F16", "x", "org/x", "F16", "queued", 0, 12, file="x-F16.gguf")
    note_queued(waits)
    note_queued(replace(waits, key="org/y F16"))
    forget("org/y F16")
    assert find_unfinished() == [replace(waits, state="unfinished")]
    path = home / "cache" / "queued_downloads.json"
    path.write_text(path.read_text().replace(own_mark(), mark_of_parent()))
    assert find_unfinished() == [], "another app that runs still has it"
    for damaged in ("", "[]", '{"a": 1}', '{"a": {"total": "x"}}'):
        path.write_text(damaged)
        assert find_unfinished() == []


def mark_of_parent() -> str:
    return f"{os.getppid()}-{int(psutil.Process(os.getppid()).create_time())}"


def test_sizes_of_one_list_have_one_unit() -> None:
    sizes = (90 << 20, 3 << 30)
    downloads = [Download(f"{size}", "a", "org/a", "Q4_0", "queued", 0, size) for size in sizes]
    assert [str(item.row.cells[3]) for item in items_of(downloads)] == ["0.09 GiB", "3.00 GiB"]

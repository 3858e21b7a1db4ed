"""The first screen: what it recommends, and that it begins nothing by itself."""

import socket
import threading
from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.model_screens import ScreenApp, known_machine
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.waiting import PATIENCE
from textual import events
from textual.pilot import Pilot

from localrun.backends import registry
from localrun.base.machine import Memory
from localrun_tui.screens import first_run
from localrun_tui.screens.downloads import download_work
from localrun_tui.screens.downloads.download import Download
from localrun_tui.screens.first_run import FirstRunScreen


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)

    def refuse(*arguments: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.mark.parametrize(("keys", "answer"), [(["enter"], "builtin"), (["down", "enter"], "models")])
def test_two_ways_to_begin(keys: list[str], answer: str) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Get Qwen3.5 4B")
        shown = screen_text(pilot.app)
        assert "16.0 GiB of memory, 10.0 GiB of it free" in shown
        assert "Apache-2.0" in shown
        assert "As Q4_K_M: room for" in shown
        assert "tok/s" in shown
        assert "Look around first" in shown  # all of it on a small screen
        await pilot.press(*keys)
        await until(pilot, lambda: app.closed)

    app = ScreenApp(FirstRunScreen(str))
    drive(app, steps)
    assert app.answer == answer


def test_who_types_begins_with_the_model_that_is_there_and_loses_no_letter() -> None:
    typed: list[str] = []

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Look around first")
        app.post_message(events.Key("h", "h"))
        app.post_message(events.Key("i", "i"))
        app.post_message(events.Paste(" there\r"))
        await until(pilot, lambda: app.closed)

    app = ScreenApp(FirstRunScreen(typed.append))
    drive(app, steps)
    assert app.answer == "builtin"
    assert "".join(typed) == "hi there\n"


def test_the_first_way_is_to_get_the_recommended_model() -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Get Qwen3.5 4B")
        shown = screen_text(pilot.app)
        assert " ".join(shown.split()).count("≈2.39 GiB to download") == 2, "one size, wherever it is told"
        await pilot.press("up", "enter")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(FirstRunScreen(str))
    drive(app, steps)
    assert app.answer.name == "qwen3.5-4b"


@pytest.mark.parametrize(("keys", "answer"), [([], "builtin"), (["down"], "models")])
def test_what_is_highlighted_stays_when_the_advice_comes(
    keys: list[str], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, gate = first_run._find_first, threading.Event()
    monkeypatch.setattr(first_run, "_find_first", lambda task: found(task) if gate.wait(PATIENCE) else None)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Look around first")
        await pilot.press(*keys)
        gate.set()
        await until_text(pilot, "Get Qwen3.5 4B")
        await pilot.press("enter")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(FirstRunScreen(str))
    drive(app, steps)
    assert app.answer == answer


def test_a_download_that_was_cut_off_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    left = Download("k", "org/tiny-GGUF", "org/tiny-GGUF", "F16", "unfinished", 3 << 20, 12 << 20)
    monkeypatch.setattr(download_work, "find_unfinished", lambda: [left, replace(left, key="l")])

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Go on with tiny-GGUF F16 and 1 more")
        shown = screen_text(pilot.app)
        assert "3.00 MiB of 12.0 MiB have arrived" in shown
        assert "Look around first" in shown
        await pilot.press("home", "enter")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(FirstRunScreen(str))
    drive(app, steps)
    assert app.answer == "downloads"


def test_a_machine_too_small_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "usual_memory", lambda: Memory(1 << 29, 1 << 28))

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "No model of the catalogue fits")
        await pilot.press("escape")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(FirstRunScreen(str))
    drive(app, steps, LARGE)
    assert app.answer is None

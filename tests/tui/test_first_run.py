"""The first screen: what it recommends, and that it begins nothing by itself."""

import socket
from typing import Any

import pytest
from localrun_testing.model_screens import ScreenApp, known_machine
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_tui import first_run
from localrun_tui.first_run import FirstRunScreen
from textual.pilot import Pilot

from localrun.fit.machine import Memory


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)

    def refuse(*arguments: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.mark.parametrize(("keys", "answer"), [(["enter"], "builtin"), (["down", "enter"], "models")])
def test_two_ways_to_begin(keys: list[str], answer: str) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Qwen3 4B")
        shown = screen_text(pilot.app)
        assert "16.0 GiB of memory, 10.0 GiB of it free" in shown
        assert "Apache-2.0" in shown
        assert "as Q4_K_M, room for" in shown
        assert "tok/s" in shown
        assert "Look around first" in shown  # all of it on a small screen
        await pilot.press(*keys)
        await until(pilot, lambda: app.closed)

    app = ScreenApp(FirstRunScreen())
    drive(app, steps)
    assert app.answer == answer


def test_a_machine_too_small_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "memory", lambda: Memory(1 << 29, 1 << 28))

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "No model of the catalogue fits")
        await pilot.press("escape")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(FirstRunScreen())
    drive(app, steps, LARGE)
    assert app.answer is None

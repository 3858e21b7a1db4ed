"""Versions of an answer side by side, and one of them taken, by keys."""

from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, sources, type_text
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until, until_text
from localrun_testing.scripted_client import Script
from textual.pilot import Pilot


async def command(pilot: Pilot[Any], text: str) -> None:
    await type_text(pilot, text)
    chat_screen(pilot).composer.submit()
    await pilot.pause()


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_versions_stand_side_by_side_and_one_is_taken(size: tuple[int, int]) -> None:
    app, _ = chat_app(Script("The **moon** pulls."), Script("Gravity does."), Script("Tides come twice."))

    async def steps(pilot: Pilot[Any]) -> None:
        screen = chat_screen(pilot)
        await ready(pilot)
        await ask(pilot, "why tides?")
        await command(pilot, "/compare")
        await until(pilot, lambda: "one version of each" in notice(pilot))
        for n in (2, 3):
            await pilot.press("ctrl+r")
            await until_text(pilot, f"‹ {n}/{n} ›")
            await until(pilot, lambda: screen.path.live is None)
        await command(pilot, "/compare")
        await until_text(pilot, "Versions side by side")
        line = next(line for line in screen_text(app).splitlines() if "Tides come twice." in line)
        assert "The moon pulls." in line
        assert all(len(each) <= size[0] for each in screen_text(app).splitlines())
        await pilot.press("right")
        await until_text(pilot, "Gravity does.")
        await pilot.press("right")  # over the one on the left
        await until_text(pilot, "The moon pulls.")
        await pilot.press("left", "enter")
        await until(pilot, lambda: sources(pilot) == ["why tides?", "Gravity does."])
        await command(pilot, "/compare")
        await until_text(pilot, "Versions side by side")
        await pilot.press("escape")
        await until(pilot, lambda: sources(pilot) == ["why tides?", "Gravity does."])

    drive(app, steps, size)

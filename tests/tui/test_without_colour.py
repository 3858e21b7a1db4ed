"""Without colour every state has another sign: a word, a mark or a line, on each of the larger screens."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, type_text
from localrun_testing.model_screens import known_machine
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.scripted_client import Script
from textual.app import App
from textual.pilot import Pilot


def is_grey(app: App[Any]) -> bool:
    """Whether no cell of the screen has a colour, as the terminal gets it."""
    colours = [
        colour.triplet
        for strip in app.screen._compositor.render_strips()
        for segment in strip.apply_filter(app._filters[-1], app.background_colors[0])
        if segment.style is not None
        for colour in (segment.style.color, segment.style.bgcolor)
        if colour is not None and colour.triplet
    ]
    return bool(colours) and all(max(colour) - min(colour) <= 2 for colour in colours)


async def command(pilot: Pilot[Any], text: str) -> None:
    await type_text(pilot, text)
    chat_screen(pilot).composer.submit()
    await pilot.pause()


async def states(app: App[Any], pilot: Pilot[Any]) -> AsyncIterator[tuple[str, ...]]:
    """Through the screens; each time what tells its states apart."""
    await ready(pilot)
    await ask(pilot, "why tides?")
    await pilot.press("ctrl+r")
    await until_text(pilot, "‹ 2/2 ›")
    await until(pilot, lambda: chat_screen(pilot).path.live is None)
    await command(pilot, "/compare")
    await until_text(pilot, "Versions side by side")
    yield "2/2 · qwen3-4b", "1/2 · qwen3-4b"  # the chat's one is on the left
    await pilot.press("escape")
    await command(pilot, "/sees")
    await until_text(pilot, "What the model sees")
    yield "▓ ", "computed already", "█ ", "to be computed", "· out of sight"
    await pilot.press("escape")
    await command(pilot, "/prompt")
    await until_text(pilot, "Careful thinker")
    yield ("Escape",)
    await pilot.press("escape", "ctrl+l")
    await until_text(pilot, "3 messages")
    yield "● why tides?", "Today"
    await pilot.press("ctrl+l", "f3")
    await until_text(pilot, "Temperature")
    yield "default", "config.toml"
    await pilot.press("escape", "f5")
    await until_text(pilot, "GiB left")
    await pilot.press("down", "down", "s", "s", "s", "p", "P", "P")
    await until_text(pilot, "too much")
    yield "▸ Memory", "█", "▓", "✘ ", "Context 8,192 ━", "≠ 2.5 MB a token"
    await pilot.press("escape", "ctrl+o", "right")
    await until_text(pilot, "★ begin with it")
    yield "✔ fits", "★ begin with it", "█ weights", "▓ KV of", "▒ working memory"


def test_every_screen_can_be_read_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    known_machine(monkeypatch)
    app, _ = chat_app(Script("The moon."), Script("Gravity."))

    async def steps(pilot: Pilot[Any]) -> None:
        async for signs in states(app, pilot):
            shown = screen_text(app)
            assert [sign for sign in signs if sign not in shown] == [], shown
            assert is_grey(app), shown

    drive(app, steps, LARGE)

"""A walk through the larger screens of the app, for tests of how all of them look."""

from collections.abc import AsyncIterator
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from localrun_testing.chat_app import ask, chat_screen, ready, type_text
from localrun_testing.pilots import until, until_text


async def command(pilot: Pilot[Any], text: str) -> None:
    await type_text(pilot, text)
    chat_screen(pilot).composer.submit()
    await pilot.pause()


async def walk(app: App[Any], pilot: Pilot[Any]) -> AsyncIterator[tuple[str, ...]]:
    """Through the screens; each time what tells its states apart."""
    await ready(pilot)
    await ask(pilot, "why tides?")
    await pilot.press("ctrl+r")
    await until_text(pilot, "‹ 2/2 ›")
    await until(pilot, lambda: chat_screen(pilot).path.live is None)
    await command(pilot, "/compare")
    await until_text(pilot, "Versions side by side")
    yield "2/2 · Qwen3 4B", "1/2 · Qwen3 4B"  # the chat's one is on the left
    await pilot.press("escape")
    await command(pilot, "/sees")
    await until_text(pilot, "What the model sees")
    yield "▓ ", "computed already", "█ ", "to be computed", "· out of sight"
    await pilot.press("escape")
    await command(pilot, "/prompt")
    await until_text(pilot, "Careful thinker")
    yield ("▌", "Escape")
    await pilot.press("escape", "ctrl+l")
    await until_text(pilot, "3 messages")
    yield "▌● why tides?", "Today"
    await pilot.press("ctrl+l", "slash", "r")
    await until_text(pilot, "/retry-with")
    yield ("▌/retry",)
    await pilot.press("ctrl+u", "f3")
    await until_text(pilot, "Temperature")
    yield "default", "config.toml"
    await pilot.press("escape", "f5")
    await until_text(pilot, "GiB left")
    await pilot.press("down", "down", "s", "s", "s", "p", "P", "P")
    await until_text(pilot, "too much")
    yield "▌ Memory", "█", "▓", "✘ ", "Context 8,192 ━", "≠ 2.5 MB a token"
    await pilot.press("escape", "ctrl+o", "right")
    await until_text(pilot, "★ begin with it")
    yield "✔ fits", "▌", "★ begin with it", "█ weights", "▓ KV ", "▒ program"

"""Driving screens of the app: keys in, text out."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from unittest.mock import patch

from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.events import Key
from textual.keys import key_to_character
from textual.notifications import Notification
from textual.pilot import Pilot

from localrun_testing.idle import patient_pilot
from localrun_testing.waiting import PATIENCE
from localrun_tui import keys_in_order

_NAMES = {"\n": "ctrl+j", " ": "space", ".": "full_stop", "/": "slash"}
Steps = Callable[["Pilot[Any]"], Awaitable[None]]
SMALL, LARGE = (80, 24), (120, 40)
_parse_rules = Stylesheet._parse_rules
_parsed: dict[tuple[object, ...], list[RuleSet]] = {}


def _parse_once(sheet: Stylesheet, css: str, **where: Any) -> list[RuleSet]:
    """Rules of a style sheet: each app of a process has the same ones, and parsing them is a tenth of its start."""
    key = (css, *sorted(where.items()), frozenset(sheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, css, **where)
    return _parsed[key]


def _patient_time_left(notification: Notification) -> float:
    """Notices stay until they are seen, however busy the machine is."""
    return notification.raised_at + notification.timeout + PATIENCE - time.time()


def drive(app: App[Any], steps: Steps, size: tuple[int, int] = SMALL) -> None:
    """Run `app` without a terminal, and `steps` on it."""

    async def run() -> None:
        with (
            patient_pilot(app),
            patch.object(Stylesheet, "_parse_rules", _parse_once),
            patch.object(Notification, "time_left", property(_patient_time_left)),
            patch.object(keys_in_order, "_PATIENCE", PATIENCE),
        ):
            async with app.run_test(size=size, notifications=True) as pilot:
                await pilot.pause()
                await steps(pilot)

    asyncio.run(run())


async def burst(pilot: "Pilot[Any]", keys: Iterable[str]) -> None:
    """Press keys faster than the app looks at them."""
    for key in keys:
        name = _NAMES.get(key, key)
        pilot.app.post_message(Key(name, key if len(key) == 1 else key_to_character(name)))
    await pilot.pause()


async def until(pilot: "Pilot[Any]", condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait for what happens on another thread; AssertionError shows the screen when it does not."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, screen_text(pilot.app)
        await pilot.pause(0.02)
    await pilot.pause()


async def until_done(pilot: "Pilot[Any]") -> None:
    """Wait until the screens have done all that they began."""
    await until(pilot, lambda: all(worker.is_finished for worker in pilot.app.workers))


async def until_text(pilot: "Pilot[Any]", text: str) -> None:
    """Wait until the screen shows `text`."""
    await until(pilot, lambda: text in screen_text(pilot.app))


async def page_down_to(pilot: "Pilot[Any]", text: str) -> None:
    """Scroll what has the focus until the screen shows `text`; what is further down may not be there yet."""
    give_up = time.monotonic() + PATIENCE
    while text not in screen_text(pilot.app):
        assert time.monotonic() < give_up, screen_text(pilot.app)
        await pilot.press("pagedown")


def screen_text(app: App[Any]) -> str:
    """What a user reads now, line by line."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())

"""Any keys in any order, on every screen: nothing fails or ends the app unasked, and Escape leads back to typing."""

import random
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready
from localrun_testing.model_screens import known_machine
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text
from localrun_testing.scripted_client import ANSWER, RATES, Script
from textual import events
from textual.geometry import Size
from textual.pilot import Pilot

from localrun_tui.app import LocalrunApp
from localrun_tui.key_parser import KeyParser
from localrun_tui.screens.chat import guard
from localrun_tui.screens.chat.chat_screen import ChatScreen
from localrun_tui.screens.dialogs.ask import AskOne
from localrun_tui.state import session, turn
from localrun_tui.themes import DARK, LIGHT

SIGNS = "".join(sign for sign in string.printable if sign.isprintable()) + "é中👨‍💻"
ARROWS = ["up", "down", "left", "right", "home", "end", "pageup", "pagedown", "tab", "shift+tab"]
OTHERS = ["enter", "escape", "backspace", "delete", "space", *(f"f{n}" for n in range(1, 13))]
ENDING = "cq"  # with Ctrl they end the app, or ask whether to
CONTROLS = [f"ctrl+{sign}" for sign in string.ascii_lowercase if sign not in ENDING]
CONTROLS += [f"{held}+{key}" for held in ("ctrl", "shift", "alt") for key in ("up", "down", "left", "right", "enter")]
KEYS = [*ARROWS * 3, *OTHERS * 2, *CONTROLS]
PASTES = ["one line", "two\nlines", "line\n" * 300, "\x1b[31mred\x1b[0m", "", "مرحبا ﷽ e\u0301", "notes.txt"]
SIZES = [(80, 24), (200, 50), (20, 5), (300, 100), (120, 40), (100, 30), (1, 1)]
WAYS = {
    "chat": (),
    "messages": ("ctrl+up",),
    "chats": ("ctrl+l",),
    "inspector": ("ctrl+g",),
    "find": ("ctrl+f",),
    "models": ("ctrl+o",),
    "catalogue": ("ctrl+o", "right"),
    "hub": ("ctrl+o", "right", "right"),
    "servers": ("ctrl+o", "right", "right", "right"),
    "storage": ("ctrl+o", "s"),
    "forms of a model": ("f7",),
    "fit of a model": ("ctrl+o", "right", "enter"),
    "settings": ("f3",),
    "a setting": ("f3", "down", "enter"),
    "this chat": ("ctrl+s",),
    "title": ("f2",),
    "explain": ("f5",),
    "downloads": ("f8",),
    "files": ("ctrl+t",),
    "palette": ("ctrl+p",),
    "help": ("f1",),
    **{
        name: (*f"/{name}", "enter")
        for name in ("tools", "requests", "prompt", "sees", "odds", "compare", "token", "theme", "read notes.txt why")
    },
}


@pytest.fixture
def failures(tmp_path: Path, folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Errors of the app's own; nothing that keys can start leaves the test's folders."""
    failed: list[Exception] = []

    def keep(error: Exception) -> Any:
        failed.append(error)
        raise error

    known_machine(monkeypatch)
    monkeypatch.setattr(session, "_known_rates", lambda: RATES)
    for module in (guard, turn):
        monkeypatch.setattr(module, "unexpected", keep)
    monkeypatch.setattr("webbrowser.open", lambda *_, **__: True)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(LocalrunApp, "action_quit", stay)  # a command or the palette may ask for it
    monkeypatch.setattr(LocalrunApp, "exit", lambda *_, **__: failed.append(RuntimeError("the app has ended")))
    return failed


async def stay(app: LocalrunApp) -> None:
    """Instead of quitting."""


class Walker:
    """Presses keys on an app, and looks at it."""

    def __init__(self, pilot: Pilot[Any], rng: random.Random, failed: Sequence[Exception]) -> None:
        self.pilot = pilot
        self.rng = rng
        self._failed = failed
        self.trail: list[str] = []

    async def press(self, *keys: str) -> None:
        """Press keys faster than the app draws, and look at what has come of them."""
        self.trail += keys
        for key in keys:
            for event in events_of(key):
                self.pilot.app.post_message(event)
        await self.pilot.pause()
        self.look()

    def look(self) -> None:
        app = self.pilot.app
        last = self.trail[-40:]
        assert app._exception is None, last
        assert not self._failed, (self._failed, last)
        assert app.size.area < 100 or screen_text(app).strip(), last
        can_focus = any(widget.focusable for widget in app.screen.query("*"))
        assert app.focused is not None or not can_focus, (app.screen, last)

    async def disturb(self) -> None:
        """A paste, or another size."""
        if self.rng.random() < 0.5:
            self.pilot.app.post_message(events.Paste(self.rng.choice(PASTES)))
        else:
            await self.resize(*self.rng.choice(SIZES))
        await self.press()

    async def resize(self, width: int, height: int) -> None:
        self.trail.append(f"{width}x{height}")
        self.pilot.app._driver._size = Size(width, height)  # type: ignore[union-attr]
        self.pilot.app.post_message(events.Resize(Size(width, height), Size(width, height)))

    async def walk(self, n_keys: int) -> None:
        """Press so many keys at random."""
        for _ in range(n_keys // 4):
            if self.rng.random() < 0.03:
                await self.disturb()
            signs = self.rng.random() < 0.4
            await self.press(*self.rng.choices(SIGNS if signs else KEYS, k=4))

    async def back(self) -> None:
        """Escape, until one types again, and an answer where changes would be lost; what was typed goes."""
        app = self.pilot.app
        editor = chat_screen(self.pilot).composer.editor
        for _ in range(12):
            if isinstance(app.screen, ChatScreen) and app.focused is editor:
                break
            loses = isinstance(app.screen, AskOne) and app.screen.question.startswith("Save the changes")
            await self.press(*(("down", "enter") if loses else ("escape",)))
        assert isinstance(app.screen, ChatScreen), (app.screen, self.trail[-60:])
        assert app.focused is editor, (app.focused, self.trail[-60:])
        chat_screen(self.pilot).composer.write("")
        await self.press("escape")


def events_of(key: str) -> list[events.Key]:
    """Of a sign, what a terminal sends for it."""
    if len(key) > 1:
        return [events.Key(key, " " if key == "space" else None)]
    return [event for event in KeyParser().feed(key) if isinstance(event, events.Key)]


def walk_all(
    app: LocalrunApp, failed: Sequence[Exception], seed: int, n_keys: int, size: tuple[int, int], ways: Sequence[str]
) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "first")
        walker = Walker(pilot, random.Random(seed), failed)
        for name in ways:
            await walker.resize(*size)
            await walker.press(*WAYS[name])
            await walker.walk(n_keys)
            await walker.back()

    drive(app, steps, size)


@pytest.mark.parametrize("half", [0, 1])
def test_random_keys_on_every_screen(half: int, tmp_path: Path, failures: list[Exception]) -> None:
    app, _ = chat_app(Script(ANSWER), folder=tmp_path / "chats")
    walk_all(app, failures, half, 20, SMALL, [*WAYS][half::2])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("size", "theme", "colour"),
    [(SMALL, DARK.name, True), ((200, 50), LIGHT.name, True), (LARGE, DARK.name, False)],
    ids=["80x24", "200x50-light", "120x40-without-colour"],
)
def test_thousands_of_random_keys(
    seed: int,
    size: tuple[int, int],
    theme: str,
    colour: bool,
    tmp_path: Path,
    failures: list[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    app, _ = chat_app(Script(ANSWER), Script(ANSWER, delay=0.02, thinking="Hm."), folder=tmp_path / "chats")
    app.theme = theme
    ways = [*WAYS]
    random.Random(seed).shuffle(ways)
    walk_all(app, failures, seed, 100, size, ways)

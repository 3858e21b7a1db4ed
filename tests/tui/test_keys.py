"""Keyboard only: every binding has an id, the help knows every key, and every screen can be reached and left."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until, until_done, until_text
from localrun_testing.scripted_client import Script, ScriptedClient
from textual.binding import Binding
from textual.command import CommandPalette
from textual.content import Content
from textual.dom import DOMNode
from textual.pilot import Pilot
from textual.screen import Screen

import localrun_tui
from localrun.chat.journal import ChatStore
from localrun_tui.app import LocalrunApp
from localrun_tui.keys import groups
from localrun_tui.screens.dialogs.ask import AskOne
from localrun_tui.screens.help_screen import key_names
from localrun_tui.themes import DARK, LIGHT, default_theme
from localrun_tui.widgets.key_bar import KeyBar


def our_bindings() -> Iterator[tuple[type, Binding]]:
    for module in pkgutil.walk_packages(localrun_tui.__path__, "localrun_tui."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, DOMNode) and value.__module__ == module.name:
                for binding in value.__dict__.get("BINDINGS", ()):
                    assert isinstance(binding, Binding), (value, binding)
                    yield value, binding


def test_every_binding_has_an_id_of_its_own() -> None:
    actions: dict[str, set[str]] = {}
    for owner, binding in our_bindings():
        assert binding.id, (owner, binding)
        actions.setdefault(binding.id, set()).add(binding.action)
    assert [name for name, done in actions.items() if len(done) > 1] == []


def test_the_help_shows_every_key_of_the_chat() -> None:
    shown = [binding for _, bindings in groups() for binding in bindings if isinstance(binding, Binding)]
    ids = {binding.id for binding in shown}
    wanted = {
        b.id for owner, b in our_bindings() if owner.__name__ in ("ChatScreen", "Editor", "Composer", "MessageView")
    }
    assert wanted <= ids
    assert {b.id for _, b in our_bindings() if str(b.id).startswith(("history.", "app."))} <= ids
    assert key_names(Binding("ctrl+j,shift+enter,f1,pageup,c", "x")) == "Ctrl+J Shift+Enter F1 Page↑ c"


@dataclass(frozen=True)
class Walk:
    """A key and words that its screen shows."""

    key: str
    words: str


def test_a_newcomer_reads_each_key_on_the_screen() -> None:
    """In 80 cells too, how to leave and where help is; what has no room is the least needed."""
    app, _ = chat_app(Script("An answer."))

    async def steps(pilot: Pilot[Any]) -> None:
        def keys() -> str:
            return screen_text(app).splitlines()[-1]

        await ready(pilot)
        assert "↑ Messages" not in keys()
        await ask(pilot, "hello")
        assert "⏎ Send" in keys()
        assert "↑ Messages" in keys()
        walk = (("ctrl+up", "c Copy"), ("up", "e Edit"), ("ctrl+l", "⏎ Open r Rename"), ("slash", "↓ To the list"))
        for key, words in walk:
            await pilot.press(key)
            await until_text(pilot, words)
            await until_text(pilot, "esc Back")
            assert keys().endswith("^q Quit f1 Help")
        await pilot.press("escape", "escape", "ctrl+up", "up", "e")
        await until_text(pilot, "Editing: Enter sends it")
        await pilot.press("escape")
        await until(pilot, lambda: "esc" not in keys())
        await pilot.press("ctrl+o")
        await until_text(pilot, "m Default")
        assert "f1 Help" in keys()
        await pilot.press("f1")
        await until(pilot, lambda: "Escape leaves" in keys())

    drive(app, steps)


WALKS = [
    Walk("f1", "Keys and commands"),
    Walk("ctrl+p", "Search for commands"),
    Walk("ctrl+s", "System prompt"),
    Walk("ctrl+t", "Attach a file: text, PDF or image"),
    Walk("ctrl+l", "Search all chats"),
    Walk("ctrl+g", "Last answer"),
]


@pytest.mark.parametrize(
    ("size", "theme"),
    [
        pytest.param(SMALL, DARK.name, id="80x24", marks=pytest.mark.slow),
        pytest.param(SMALL, LIGHT.name, id="80x24-light", marks=pytest.mark.slow),
        pytest.param(LARGE, DARK.name, id="120x40", marks=pytest.mark.slow),
        pytest.param(LARGE, LIGHT.name, id="120x40-light", marks=pytest.mark.slow),
    ],
)
def test_every_screen_is_reached_and_left_by_keys_and_fits(size: tuple[int, int], theme: str) -> None:
    app, _ = chat_app(Script("An **answer** in words."))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        app.theme = theme
        for walk in WALKS:
            await pilot.press(walk.key)
            await until_text(pilot, walk.words)
            lines = screen_text(app).splitlines()
            assert len(lines) <= size[1]
            assert all(len(line) <= size[0] for line in lines)
            await pilot.press("escape")
            await until_text(pilot, "Ask anything. Enter sends.")
        assert app.focused is not None
        assert app.focused.id == "editor"

    drive(app, steps, size)


@pytest.mark.parametrize(("opens", "words"), [("f5", "Explain"), ("f8", "Nothing is being")])
def test_q_leaves_a_page_where_nothing_is_typed_and_a_question_mark_helps(opens: str, words: str) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("question_mark")
        await until(pilot, lambda: chat_screen(pilot).pane.composer.editor.text == "?")
        await pilot.press(opens)
        await until_text(pilot, words)
        await pilot.press("question_mark")
        await until_text(pilot, "Keys and commands")
        await pilot.press("question_mark")
        await until_text(pilot, words)
        await pilot.press("q")
        await until(pilot, lambda: app.screen is chat_screen(pilot))

    drive(app, steps)


def test_commands_of_the_palette_work() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+p", *"keys")
        await until_text(pilot, "F1 · all of them")
        await pilot.press("enter")
        await until_text(pilot, "Models and settings")
        await pilot.press("escape")
        await pilot.press("ctrl+p", *"inspector")
        await until_text(pilot, "the KV cache, and where")
        await pilot.press("enter")
        await until_text(pilot, "Last answer")
        await pilot.press("ctrl+p", *"light")  # as it is described: no name has it
        await until_text(pilot, "dark, light and many more")

    drive(app, steps)


def test_a_palette_that_is_left_while_it_searches_does_not_end_the_app() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+p")
        palette = app.screen
        assert isinstance(palette, CommandPalette)
        await pilot.press("escape")
        await until(pilot, lambda: palette not in app.screen_stack)
        palette._gather_commands("quit")
        await until_done(pilot)
        await ask(pilot, "still there?")

    drive(app, steps)


def test_pages_of_a_list_that_has_no_room_yet_do_not_end_the_app() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        for key in ("ctrl+p", "ctrl+o"):
            await pilot.press(key)
            await pilot.resize_terminal(1, 1)
            for page in ("pagedown", "pageup"):
                await pilot.press("down", page)
                assert app._exception is None
            await pilot.resize_terminal(*SMALL)
            await pilot.press("pagedown", "escape")
        await ask(pilot, "still there?")

    drive(app, steps)


def test_a_theme_is_chosen_and_kept(home: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        app.action_change_theme()
        await until_text(pilot, "localrun-light")
        await pilot.press("down", "enter")
        await until(pilot, lambda: app.theme == LIGHT.name)
        await until_done(pilot)

    drive(app, steps)
    assert "localrun-light" in (home / "config.toml").read_text()


@pytest.mark.parametrize(
    ("name", "theme"), [("light", LIGHT.name), ("dark", DARK.name), ("nord", "nord"), ("no such", DARK.name)]
)
def test_a_theme_is_set_by_its_name_or_its_kind(name: str, theme: str) -> None:
    app = LocalrunApp(lambda choice, progress: ScriptedClient([]), lambda: ChatStore(None), lambda: None, name)
    assert app.theme == theme


def test_the_first_theme_is_what_the_terminal_suggests() -> None:
    assert default_theme({}) == default_theme({"COLORFGBG": "15;0"}) == DARK.name
    assert default_theme({"COLORFGBG": "0;15"}) == LIGHT.name
    assert LocalrunApp(None, None, theme="no such").theme in (DARK.name, LIGHT.name)  # type: ignore[arg-type]


def test_without_colour_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app, _ = chat_app(Script("`code` and **bold**"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "x")
        colours = {
            segment.style.color.triplet
            for strip in app.screen._compositor.render_strips()
            for segment in strip.apply_filter(app._filters[-1], app.background_colors[0])
            if segment.style is not None and segment.style.color is not None and segment.style.color.triplet
        }
        assert app.no_color
        assert all(max(colour) - min(colour) <= 2 for colour in colours)  # greys

    drive(app, steps)


def test_unchanged_keys_are_not_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app()
    drawn: list[KeyBar] = []
    render = KeyBar.render

    def count(bar: KeyBar) -> Content:
        drawn.append(bar)
        return render(bar)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        bar = pilot.app.screen.query_one(KeyBar)
        await until(pilot, lambda: bar.keys)
        monkeypatch.setattr(KeyBar, "render", count)
        pilot.app.screen.refresh_bindings()
        await pilot.pause()
        assert not drawn
        bar.keys = bar.keys[:-1]
        await pilot.pause()
        assert drawn

    drive(app, steps)


def test_which_keys_work_is_asked_once_for_a_line_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer takes longer than the drawing: every binding of every widget around the focus is asked."""
    app, _ = chat_app()
    asked: list[Screen[Any]] = []
    active: Callable[[Screen[Any]], Any] = vars(Screen)["active_bindings"].fget

    def count(screen: Screen[Any]) -> Any:
        asked.append(screen)
        return active(screen)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        bar = pilot.app.screen.query_one(KeyBar)
        await until(pilot, lambda: bar.keys)
        before, bar.keys = bar.keys, ()
        monkeypatch.setattr(Screen, "active_bindings", property(count))
        bar.look()
        assert bar.keys == before
        assert len(asked) == 1

    drive(app, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_key_of_the_line_can_be_clicked(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each where it is drawn, as the key would be pressed; between them is nothing."""
    app, _ = chat_app()
    pressed: list[str] = []

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        bar = pilot.app.screen.query_one(KeyBar)
        await until(pilot, lambda: bar.keys)
        monkeypatch.setattr(pilot.app, "simulate_key", pressed.append)
        line = screen_text(pilot.app).splitlines()[-1]
        expected = []
        for key in bar.keys:
            x = line.index(f"{key.display} {key.binding.description}")
            await pilot.click(bar, offset=(x, 0))
            await pilot.hover(bar, offset=(x + key.cells - 2, 0))
            assert bar.tooltip == key.tooltip
            assert bar.key_at(x + key.cells - 1) is None
            expected.append(key.binding.key)
        assert pressed == expected

    drive(app, steps, size)


@pytest.mark.parametrize("keys", [("ctrl+q",), ("ctrl+c", "ctrl+c")])
def test_the_keys_to_quit_are_those_of_dialogs_too(keys: tuple[str, ...]) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await app.push_screen(AskOne("Which?", [("a", "A", ""), ("b", "B", "")]))
        await pilot.press(*keys)
        await until(pilot, lambda: not app.is_running)

    drive(app, steps)

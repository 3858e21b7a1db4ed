"""Whatever is typed into a field is in the field, and nothing else has happened: every sign, every field there is."""

import ast
import importlib
import pkgutil
import string
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from localrun_testing.chat_app import chat_app, ready
from localrun_testing.model_screens import known_machine
from localrun_testing.pilots import LARGE, drive, until
from textual import events
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input, TextArea

import localrun_tui
from localrun.base.settings import Settings, write_setting
from localrun.chat.images import ImageShelf
from localrun_tui.key_parser import KeyParser
from localrun_tui.screens.chat.chat_settings import ChatSettings, ChatSettingsScreen
from localrun_tui.screens.dialogs.ask import AskOne, AskText
from localrun_tui.screens.dialogs.attach_screen import AttachScreen
from localrun_tui.screens.dialogs.compare_screen import CompareScreen
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.dialogs.odds_screen import OddsScreen
from localrun_tui.screens.dialogs.prompt_screen import PromptScreen
from localrun_tui.screens.dialogs.read_screen import ReadScreen
from localrun_tui.screens.downloads.downloads import DownloadsScreen
from localrun_tui.screens.explain.explain_screen import ExplainScreen
from localrun_tui.screens.first_run import FirstRunScreen
from localrun_tui.screens.help_screen import HelpScreen
from localrun_tui.screens.models.model_sections import SECTIONS
from localrun_tui.screens.models.models_screen import ModelsScreen
from localrun_tui.screens.models.precision_menu import PrecisionMenu
from localrun_tui.screens.models.storage_screen import StorageScreen
from localrun_tui.screens.requests.requests_screen import RequestsScreen
from localrun_tui.screens.settings.endpoint_form import EndpointForm
from localrun_tui.screens.settings.settings_screen import SettingsScreen
from localrun_tui.screens.tools.tools_screen import ToolsScreen
from localrun_tui.state.long_text import LongText
from localrun_tui.widgets.fields import LineField, TextField
from localrun_tui.widgets.leaving import Dialog, Page
from localrun_tui.widgets.words import index_at, word_at

PRINTABLE = "".join(sign for sign in string.printable if sign.isprintable()) + "éßñж中€"
SIGNS = PRINTABLE + "\u200c\u200d"
WITHOUT_FIELDS = {AskOne, CompareScreen, ConfirmScreen, DownloadsScreen, ExplainScreen, FirstRunScreen, HelpScreen}
WITHOUT_FIELDS |= {OddsScreen, PrecisionMenu, PromptScreen, RequestsScreen, StorageScreen, ToolsScreen}
Field = Input | TextArea
Place = tuple[str, int]  # a file, and the line where a field is made


@dataclass(frozen=True)
class Way:
    """To a field: the screen that is opened above the chat, and the keys that are pressed there."""

    screen: Callable[[], Screen[Any]] | None = None
    keys: tuple[str, ...] = ()


NO_SESSION: Any = SimpleNamespace(info=None, model=SimpleNamespace(client=None, loading=False), chat=None)
NOTHING_SET = ChatSettings("", "balanced", "stop", "auto")
WAYS = {
    "editor": Way(),
    "find in the chat": Way(keys=("ctrl+f",)),
    "search of chats": Way(keys=("ctrl+l", "slash")),
    "palette": Way(keys=("ctrl+p",)),
    "chat settings": Way(lambda: ChatSettingsScreen(NOTHING_SET, Settings(), {})),
    "attach": Way(lambda: AttachScreen(Path.cwd(), ImageShelf(None))),
    "part of a file": Way(lambda: ReadScreen(LongText(NO_SESSION, "a.txt", "a\nb"))),
    "question about a file": Way(lambda: ReadScreen(LongText(NO_SESSION, "a.txt", "a\nb"), "why?")),
    "ask": Way(lambda: AskText("Title?")),
    "ask for a path": Way(lambda: AskText("Open?", is_path=True)),
    "server": Way(lambda: EndpointForm(None, [])),
    "search of settings": Way(SettingsScreen, ("slash",)),
    "a setting": Way(SettingsScreen, ("slash", *"system prompt", "enter", "enter")),
    **{f"models: {name}": Way(lambda name=name: ModelsScreen(section=name), ("slash",)) for name in SECTIONS},  # type: ignore[misc]
}


def state(pilot: Pilot[Any], home: Path) -> tuple[Any, ...]:
    """What no letter may change."""
    app = pilot.app
    section = app.screen.section_name if isinstance(app.screen, ModelsScreen) else ""
    settings = {path: path.read_bytes() for path in home.rglob("*.toml")}
    return app.screen_stack[:], app.focused, app.clipboard, app.theme, section, settings


def modules() -> Iterator[Any]:
    for module in pkgutil.walk_packages(localrun_tui.__path__, "localrun_tui."):
        yield importlib.import_module(module.name)


def own_classes(base: type) -> set[type]:
    return {
        value
        for module in modules()
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
    }


def places_in_the_source() -> set[Place]:
    """Where fields are made."""
    names = {one.__name__ for base in (Input, TextArea) for one in own_classes(base)} | {"Input", "TextArea"}
    return {
        (str(module.__file__), node.lineno)
        for module in modules()
        for node in ast.walk(ast.parse(Path(module.__file__).read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    }


@pytest.fixture
def made_at(monkeypatch: pytest.MonkeyPatch) -> dict[int, Place]:
    """Where each field was made, by its id()."""
    made: dict[int, Place] = {}

    def remembering(original: Callable[..., None]) -> Callable[..., None]:
        def init(self: Field, *arguments: Any, **named: Any) -> None:
            frame = sys._getframe(1)
            while frame.f_back is not None and frame.f_locals.get("self") is self:
                frame = frame.f_back
            made[id(self)] = frame.f_code.co_filename, frame.f_lineno
            original(self, *arguments, **named)

        return init

    for base in (Input, TextArea):
        monkeypatch.setattr(base, "__init__", remembering(base.__init__))
    return made


async def settled(pilot: Pilot[Any]) -> None:
    """Once all is read that a screen shows; a tree of files goes on waiting for folders to read."""
    await until(pilot, lambda: all(one.is_finished or one.name == "_loader" for one in pilot.app.workers))


def text_of(one: Field) -> str:
    return one.value if isinstance(one, Input) else one.text


async def type_all(pilot: Pilot[Any], one: Field, home: Path) -> None:
    """Every sign, as the terminal sends it, faster than the app looks.

    Joiners of letters go to our own fields: the palette's is Textual's, and no command has any in its name.
    """
    signs = SIGNS if isinstance(one, LineField | TextField) else PRINTABLE
    one.focus()
    await pilot.press("ctrl+end" if isinstance(one, TextArea) else "end")
    await pilot.pause()
    before, was = text_of(one), state(pilot, home)
    for key in KeyParser().feed(signs):
        pilot.app.post_message(key)
    await until(pilot, lambda: len(text_of(one)) >= len(before + signs))
    await settled(pilot)
    assert text_of(one) == before + signs
    assert state(pilot, home) == was


async def type_on(pilot: Pilot[Any], way: Way, home: Path, made_at: dict[int, Place]) -> tuple[type, set[Place]]:
    """Go there, type into one field of each place, and come back; gives the screen and the places."""
    app = pilot.app
    if way.screen is not None:
        await app.push_screen(way.screen())
        await settled(pilot)
    await pilot.press(*way.keys)
    await settled(pilot)
    fields = {made_at[id(one)]: one for one in app.screen.query("*") if isinstance(one, Field) and is_shown(one)}
    assert fields, way
    screen = type(app.screen)
    for one in fields.values():
        await type_all(pilot, one, home)
    while len(app.screen_stack) > 1:
        await app.pop_screen()
    await pilot.press("escape")
    return screen, set(fields)


def is_shown(one: Field) -> bool:
    return one.focusable and all(each.display for each in one.ancestors_with_self)


def test_every_sign_reaches_every_field(home: Path, made_at: dict[int, Place], monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    write_setting("theme", "localrun-light")
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        opened: set[type] = set()
        typed: set[Place] = set()
        await ready(pilot)
        app.copy_to_clipboard("kept")
        for way in WAYS.values():
            screen, places = await type_on(pilot, way, home, made_at)
            opened.add(screen)
            typed |= places
        assert places_in_the_source() <= typed, "no way leads to these fields"
        assert own_classes(Screen) - WITHOUT_FIELDS - {Page, Dialog} <= opened

    drive(app, steps, LARGE)


def test_a_double_click_selects_a_word_of_a_field() -> None:
    class Fields(App[None]):
        def compose(self) -> Iterator[Input | TextArea]:
            yield LineField("see notes.txt now", compact=True)
            yield TextField("first\nsee 中文 now", compact=True)

    async def steps(pilot: Pilot[Any]) -> None:
        line, text = pilot.app.query_one(LineField), pilot.app.query_one(TextField)
        await pilot.click(line, offset=(7, 0), times=2)
        await until(pilot, lambda: line.selected_text == "notes.txt")
        await pilot.click(line, offset=(7, 0), times=3)
        await until(pilot, lambda: line.selected_text == line.value)
        await pilot.click(text, offset=(6, 1), times=2)
        await until(pilot, lambda: text.selected_text == "中文")
        await pilot.click(text, offset=(6, 1), times=3)
        await until(pilot, lambda: text.selected_text == text.text)

    drive(Fields(), steps)


def test_a_secret_is_not_copied() -> None:
    class Fields(App[None]):
        def compose(self) -> Iterator[LineField]:
            yield LineField("secret", password=True)
            yield LineField("open")

    async def steps(pilot: Pilot[Any]) -> None:
        secret, text = pilot.app.query(LineField)
        for field in (secret, text):
            field.focus()
            field.select_all()
            await pilot.press("ctrl+c")
            await pilot.press("ctrl+x")
        assert (secret.value, text.value, pilot.app.clipboard) == ("secret", "", "open")

    drive(Fields(), steps)


@pytest.mark.parametrize(
    ("text", "cell", "word"),
    [
        ("at 08:29:08.944 on 2026-11-29.", 5, "08:29:08.944"),
        ("at 08:29:08.944 on 2026-11-29.", 22, "2026-11-29"),
        ("don't (do) that", 2, "don't"),
        ("don't (do) that", 6, "("),
        ("中文 and", 3, "中文"),
        ("中文 and", 4, " "),
        ("end", 9, ""),
    ],
)
def test_a_word_is_what_one_would_copy(text: str, cell: int, word: str) -> None:
    start, end = word_at(text, index_at(text, cell))
    assert text[start:end] == word


@pytest.mark.parametrize("name", [name for name, way in WAYS.items() if way.keys[-1:] in (("slash",), ("ctrl+f",))])
def test_what_is_typed_in_one_go_with_the_key_of_a_field_reaches_it(
    name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters that come with the key would else be commands of a list, or be lost."""
    known_machine(monkeypatch)
    app, _ = chat_app()
    way = WAYS[name]

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        if way.screen is not None:
            await app.push_screen(way.screen())
        await pilot.press(*way.keys[:-1])
        await pilot.pause()
        before = state(pilot, home)
        app.post_message(events.Key(way.keys[-1], "/" if way.keys[-1] == "slash" else None))
        for key in KeyParser().feed("deepseek morusa"):
            app.post_message(key)
        await until(pilot, lambda: isinstance(app.focused, Input) and app.focused.value == "deepseek morusa")
        assert state(pilot, home)[0] == before[0]
        assert state(pilot, home)[2:] == before[2:]

    drive(app, steps, LARGE)

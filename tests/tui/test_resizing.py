"""Terminals of any size, at any moment: the app goes on, panels give way, and the chat keeps its room."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, send
from localrun_testing.model_screens import known_machine
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until
from localrun_testing.scripted_client import Script
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.pilot import Pilot

from localrun.base.content import FilePart, TextPart
from localrun.chat.tree import Message
from localrun_tui.markdown.wide import Wide
from localrun_tui.screens.chat.inspector import Lines
from localrun_tui.screens.chat.message_document import MessageDocument
from localrun_tui.screens.chat.panels import Panels
from localrun_tui.screens.downloads import downloads
from localrun_tui.screens.models import precision_items, storage_screen
from localrun_tui.screens.models.model_items import CATALOGUE_COLUMNS, DISK_COLUMNS, HUB_COLUMNS, REMOTE_COLUMNS
from localrun_tui.screens.requests import requests_screen
from localrun_tui.screens.settings import settings_items
from localrun_tui.screens.tools import tools_screen
from localrun_tui.widgets.columns import Column, Row
from localrun_tui.widgets.meters import bar
from localrun_tui.widgets.model_list import Item, ModelList

LEAST = 44  # cells that a chat has beside panels
WIDEST = 140
NARROW = 60
LEAST_NAME = 8  # cells
NEAR_PANELS = 60  # sizes with the widths at which panels come and go
EVERYTHING = """# Head

- a
  1. b
     > c 中文

```python
x = 1  # a line of code
```

| a | b |
|---|--:|
| 中文 | `1` |

$$x^2$$

*text* [l](http://x.y) and more of it
"""


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("wide", [Wide(), Wide(whole=True), Wide(whole=True, shift=16)])
def test_messages_have_lines_in_any_width(role: str, wide: Wide) -> None:
    files = (FilePart("a.txt", "x"),) if role == "user" else ()
    content = (*files, TextPart(EVERYTHING))
    document = MessageDocument(Message("1", None, role, content, thinking=EVERYTHING), "a name", (1, 2))
    document.note, document.thinking_open, document.wide = Content("a note 中文"), True, wide
    for width in range(-3, 40):
        assert document.lines(width)
        assert bar(0.5, width).cell_length == max(width, 0)
        assert Lines("x").lines(width)


def resize(pilot: Pilot[Any], width: int, height: int) -> None:
    """What a terminal tells, without waiting for what comes of it."""
    pilot.app._driver._size = Size(width, height)  # type: ignore[union-attr]
    pilot.app.post_message(events.Resize(Size(width, height), Size(width, height)))


@pytest.mark.parametrize(
    "columns",
    [
        *(DISK_COLUMNS, CATALOGUE_COLUMNS, HUB_COLUMNS, REMOTE_COLUMNS, precision_items.COLUMNS, downloads.COLUMNS),
        *(settings_items.COLUMNS, storage_screen.COLUMNS, tools_screen.COLUMNS, requests_screen.COLUMNS),
    ],
)
def test_columns_give_way_to_names_in_a_narrow_terminal(columns: Sequence[Column]) -> None:
    cells = [Content("x" * (column.width or 99)) for column in columns]
    (line,) = Row(columns, cells).lines(NARROW - 4)
    shown = line.plain.split()
    assert line.cell_length == NARROW - 4
    assert len(shown) >= 3
    assert all(len(text) >= LEAST_NAME for text, column in zip(shown, columns, strict=False) if not column.width)


def test_columns_of_a_wide_terminal_stay_together() -> None:
    """And none is cut while there is room."""
    items = [Item(name, Row(DISK_COLUMNS, [Content(name), *[Content("x")] * 4]), name) for name in ("a", "n" * 130)]
    listed: ModelList[str] = ModelList(DISK_COLUMNS)
    for shown, first in ((items[:1], LARGE[0]), (items, 130 + 2)):
        listed.show(shown, "")
        for item in shown:
            (line,) = item.row.lines(200)
            assert item.key in line.plain
            assert line.plain.index(" x") < first, "the next column"


@pytest.mark.parametrize("width", [100, 107, 120, 130, 149])
def test_text_is_in_the_middle_of_a_screen_without_panels(width: int) -> None:
    app, _ = chat_app(Script("word " * 200))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "why?")
        lines = [line for line in screen_text(app).splitlines() if line.count("word") > 5]
        left = min(len(line) - len(line.lstrip()) for line in lines)
        right = width - max(len(line.rstrip()) for line in lines)
        assert abs(left - right) <= len("word "), (left, right)  # lines end with whole words

    drive(app, steps, (width, 40))


def test_the_numbers_of_a_chat_are_seen_in_a_narrow_terminal() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "Temperature" in screen_text(app))
        below = screen_text(app).partition("Temperature")[2].splitlines()[1]
        assert below.strip("│ ").startswith("0."), "its value"

    drive(app, steps, (NARROW, 20))


def test_no_size_ends_an_answer(tmp_path: Path) -> None:
    """Every width, in any order, and many where panels come and go."""
    rng = random.Random(36)
    sizes = [(width, rng.randint(1, 30)) for width in range(1, WIDEST + 1)]
    sizes += [(rng.randint(76, 124), 24) for _ in range(NEAR_PANELS)]
    rng.shuffle(sizes)
    script = Script(EVERYTHING, delay=0.05, thinking="a thought 中文", never_ends=True)
    app, _ = chat_app(Script(), script, folder=tmp_path)
    keys = ["ctrl+g", "ctrl+l", "ctrl+f", "escape", "tab", "slash"]

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "before")
        await pilot.press("ctrl+g", "ctrl+l")
        await send(pilot, "a long one")
        screen = chat_screen(pilot)
        for n, size in enumerate(sizes):
            resize(pilot, *size)
            for _ in range(rng.randint(0, 8)):
                await asyncio.sleep(0)
            if n % 10 == 9:
                app.post_message(events.Key(rng.choice(keys), None))
            if n % 50 == 49:
                await pilot.pause()
        assert app._exception is None
        resize(pilot, *LARGE)
        await until(pilot, lambda: screen.pane.size.width >= LEAST)

    drive(app, steps, LARGE)


@pytest.mark.parametrize("panel", ["", "ctrl+g"])
def test_one_sees_what_one_types_in_five_lines(panel: str) -> None:
    """With a notice above it, too."""
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "before")
        await pilot.press(*[panel] * bool(panel), *"abc")
        chat_screen(pilot).pane.notice.say("a note\nof two lines")
        await pilot.resize_terminal(20, 5)
        await until(pilot, lambda: "abc" in screen_text(app))
        await pilot.resize_terminal(*SMALL)
        await until(pilot, lambda: "╰─" in screen_text(app))

    drive(app, steps)


def test_every_screen_bears_a_tiny_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        for key in ("f1", "f3", "f5", "f8", "ctrl+o", "ctrl+p", "ctrl+s", "ctrl+t"):
            await pilot.press(key)
            for size in ((30, 8), (3, 20), (1, 1)):
                await pilot.resize_terminal(*size)
            await pilot.press("escape")

    drive(app, steps)


@pytest.mark.parametrize(
    "keys", [("ctrl+g",), ("ctrl+l",), ("ctrl+g", "ctrl+l"), ("ctrl+l", "escape", "ctrl+g", "ctrl+s")]
)
def test_panels_give_way_and_come_back(keys: tuple[str, ...]) -> None:
    """Behind a dialog, too."""
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        await pilot.press(*keys)
        screen = chat_screen(pilot)
        panels = (screen.chats, screen.inspector)

        def shown() -> list[bool]:
            return [panel.display and panel.size.width > 0 for panel in panels]

        await pilot.pause()
        wide = shown()
        for width in (100, 120, 99, 80, 40, 80, 130, 100):
            await pilot.resize_terminal(width, 30)
            assert screen.pane.size.width >= min(LEAST, width)
            assert screen.pane.region.right <= width
            assert sum(shown()) <= (2 if width >= 100 else 1)
            if width < 100 and not screen.chats.has_focus_within:
                assert screen.transcript.size.height > 0
            if width >= 100:
                assert shown() == wide
        assert all(panel.region.width >= 20 for panel in panels if panel.display)

    drive(app, steps, LARGE)


@pytest.mark.parametrize("key", ["ctrl+g", "ctrl+l"])
def test_a_panel_that_was_opened_where_there_was_little_room_stays_where_there_is_more(key: str) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        await pilot.press(key)
        screen = chat_screen(pilot)
        panel = screen.inspector if key == "ctrl+g" else screen.chats
        for width in (80, 120, 80, 200):
            await pilot.resize_terminal(width, 40)
            assert panel.display, width
            assert panel.size.width > 0, width

    drive(app, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_panels_know_the_room_before_they_have_styles(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all of them are styled twice when the app starts."""
    app, _ = chat_app()
    update, again = Panels.update_node_styles, []

    def watched(panels: Panels, animate: bool = True) -> None:
        again.extend([panels.size] if panels.is_mounted else [])
        update(panels, animate)

    monkeypatch.setattr(Panels, "update_node_styles", watched)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        assert again == []

    drive(app, steps, size)


def test_the_words_in_an_empty_editor_are_not_cut() -> None:
    """Between both panels neither."""
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g", "ctrl+l")
        editor = chat_screen(pilot).composer.editor
        for width in (120, 200, 120, 80, 44):
            await pilot.resize_terminal(width, 30)
            await until(pilot, lambda: len(str(editor.placeholder)) < editor.size.width)

    drive(app, steps, LARGE)


def test_on_a_wide_screen_list_and_inspector_open_by_themselves_unless_they_were_closed(tmp_path: Path) -> None:
    app, _ = chat_app(folder=tmp_path)

    def shown() -> list[bool]:
        return [chat.panels._history.display, chat.panels._inspector.display]

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await until(pilot, lambda: shown() == [True, True])
        await ask(pilot, "hello")
        await until(pilot, lambda: screen_text(app).count("hello") >= 3)  # in the first line and in the list, too
        assert app.focused is chat.composer.editor
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: shown() == [False, False])
        await pilot.press("ctrl+g")
        await pilot.resize_terminal(200, 50)
        await until(pilot, lambda: shown() == [True, True])
        await pilot.press("ctrl+l", "ctrl+l")
        await until(pilot, lambda: shown() == [False, True])
        await pilot.resize_terminal(80, 24)
        await pilot.resize_terminal(200, 50)
        await until(pilot, lambda: shown() == [False, True])

    chat = app.chat_screen
    drive(app, steps, (200, 50))

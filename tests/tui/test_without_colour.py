"""Without colour every state has another sign: a word, a mark or a line, on each of the larger screens."""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import chat_app, ready
from localrun_testing.model_screens import known_machine
from localrun_testing.pilots import LARGE, drive, screen_text, until_text
from localrun_testing.screens_walk import walk
from localrun_testing.scripted_client import Script
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.command import CommandList
from textual.geometry import Region
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Button, OptionList, RadioSet

import localrun_tui
from localrun_tui.state import title_giver
from localrun_tui.widgets.marked_options import MARK, MarkedOptions


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


def marked_rows(options: OptionList) -> list[int]:
    """Numbers of the lines of a list, as drawn, that begin with the mark."""
    strips = [options.render_line(y) for y in range(options.scrollable_content_region.height)]
    return [y for y, strip in enumerate(strips) if strip.text.startswith(MARK)]


def highlighted_rows(options: OptionList) -> list[int]:
    """Numbers of the lines of the highlighted option."""
    height = options.scrollable_content_region.height
    lines = options._lines[options.scroll_offset.y :][:height]
    return [y for y, (option, _) in enumerate(lines) if option == options.highlighted]


def lists(app: App[Any]) -> list[OptionList]:
    """Those on the screen, with a row to choose."""
    shown = [one for one in app.screen.query(OptionList) if one.display and one.region.height and one.option_count]
    return [one for one in shown if one.highlighted is not None]


def test_every_screen_can_be_read_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(title_giver, "IDLE", 3600.0)  # no title is given meanwhile
    known_machine(monkeypatch)
    app, _ = chat_app(Script("The moon."), Script("Gravity."))

    async def steps(pilot: Pilot[Any]) -> None:
        async for signs in walk(app, pilot):
            shown = screen_text(app)
            assert [sign for sign in signs if sign not in shown] == [], shown
            assert is_grey(app), shown
            for options in lists(app):
                assert marked_rows(options) == highlighted_rows(options) != [], shown

    drive(app, steps, LARGE)


def test_every_list_marks_its_row() -> None:
    """Only Textual's own palette has a list of another kind, which turns its row's colours round."""
    for module in pkgutil.walk_packages(localrun_tui.__path__, "localrun_tui."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, OptionList) and value not in (OptionList, CommandList):
                assert issubclass(value, MarkedOptions), value
    for path in Path(localrun_tui.__file__).parent.rglob("*.py"):
        assert not re.search(r"\bOptionList\(", path.read_text("utf-8")), path


def test_a_row_without_width_is_drawn_without_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OptionList, "render_line", lambda options, y: Strip([Segment("")]))
    options = MarkedOptions("a row")
    options.highlighted = 0
    monkeypatch.setattr(options, "_option_at", lambda y: 0)
    assert options.render_line(0).cell_length == 0


def test_the_first_screen_and_one_questions_mark_what_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    known_machine(monkeypatch)
    app, _ = chat_app(choose=lambda: None)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Get Qwen3.5 4B")
        assert "▌Start now" in screen_text(app)
        await pilot.press("up")
        await until_text(pilot, "▌Get Qwen3.5 4B")
        await pilot.press("down")
        await until_text(pilot, "▌Start now")
        assert "▌Get" not in screen_text(app)
        await pilot.press("enter")
        await ready(pilot)
        app.action_change_theme()
        await until_text(pilot, "▌● localrun-dark")
        await pilot.press("down")
        await until_text(pilot, "▌  localrun-light")

    drive(app, steps)


def test_what_has_the_focus_in_a_form_is_underlined_or_turned_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+s")
        await until_text(pilot, "System prompt")
        kinds = set()
        for _ in range(12):
            await pilot.press("tab")
            focused = app.focused
            assert focused is not None
            words = {RadioSet: "underline", Button: "reverse"}.get(type(focused))
            kinds.add(type(focused))
            if words:
                assert any(words in str(style) for style in styles_in(app, focused.region)), type(focused)
        assert {RadioSet, Button} <= kinds

    drive(app, steps, LARGE)


def styles_in(app: App[Any], region: Region) -> list[Style]:
    """Styles of the cells of a region, as they are drawn."""
    rows = list(app.screen._compositor.render_strips())[region.y : region.bottom]
    strips = [strip.crop(region.x, region.right) for strip in rows]
    return [segment.style for strip in strips for segment in strip if segment.style is not None]

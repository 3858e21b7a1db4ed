"""60 columns and 20 lines: nothing is cut without a sign, and every line of keys is whole."""

from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import chat_app, ready, send
from localrun_testing.model_screens import ScreenApp, known_machine
from localrun_testing.pilots import drive, screen_text, until, until_text
from textual.content import Content
from textual.pilot import Pilot

from localrun.hub.disk.library import scan
from localrun_tui.markdown.wrapping import first_lines
from localrun_tui.screens.models.catalogue_section import CatalogueSection
from localrun_tui.screens.models.model_sections import subject_of_stored
from localrun_tui.screens.models.models_screen import ModelsScreen
from localrun_tui.screens.models.precision_menu import PrecisionMenu

NARROW = (60, 20)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch, idle=False)


@pytest.mark.parametrize(
    ("opens", "last"),
    [
        ("ctrl+o", "m Default f1 Help"),
        ("/tools", "a Add a server f1 Help"),
        ("ctrl+s", "Ctrl+S saves, Escape\nleaves"),
        ("ctrl+t", "Enter attaches,\nEscape leaves"),
    ],
)
def test_the_line_of_keys_is_whole(opens: str, last: str, folder: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        if opens.startswith("/"):
            await send(pilot, opens)
        else:
            await pilot.press(opens)
        shown = [line.strip() for line in last.splitlines()]
        await until(
            pilot,
            lambda: all(
                line.strip().endswith(words)
                for line, words in zip(screen_text(app).splitlines()[-len(shown) :], shown, strict=True)
            ),
        )

    drive(app, steps, NARROW)


@pytest.mark.parametrize(
    ("opens", "words"),
    [("f1", "distinguishes it"), ("ctrl+s", "( ) Creative"), ("ctrl+s", "( ) Balanced"), ("ctrl+s", "Longest answer")],
)
def test_words_and_choices_are_whole(opens: str, words: str) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press(opens)
        await until_text(pilot, words)

    drive(app, steps, NARROW)


def test_precisions_say_for_which_context_and_what_memory_is_left() -> None:
    builtin = next(model for model in scan() if model.source == "builtin")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "░  9.")
        lines = screen_text(pilot.app).splitlines()
        assert any(line.endswith("GiB left") and "░" in line for line in lines)
        assert "HERE is for 2,048\n tokens" in screen_text(pilot.app)

    drive(ScreenApp(PrecisionMenu(subject_of_stored(builtin), lambda: 10 << 30)), steps, NARROW)


@pytest.mark.parametrize(("size", "n_rows", "cut"), [(NARROW, 3, True), ((80, 24), 3, False), ((120, 40), 10, False)])
def test_the_list_has_more_room_than_the_card(size: tuple[int, int], n_rows: int, cut: bool) -> None:
    screen = ModelsScreen(section="catalogue")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "begin with it")
        assert screen.query_one(CatalogueSection).options.size.height >= n_rows
        assert ("…" in screen_text(pilot.app).splitlines()[-2]) is cut

    drive(ScreenApp(screen), steps, size)


def test_what_the_list_searches_is_named_by_its_key() -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "/ Filter")
        await pilot.press("right", "right")
        await until_text(pilot, "/ Search")
        assert "/ Filter" not in screen_text(pilot.app)
        await pilot.press("slash", *"qwen")
        assert isinstance(pilot.app.screen, ModelsScreen)
        assert pilot.app.screen.box.value == "qwen"

    drive(ScreenApp(ModelsScreen()), steps, NARROW)


def test_first_lines_end_with_a_sign_where_there_are_more() -> None:
    text = Content("one two three\nfour five\nsix")
    assert first_lines(text, 9, 4).plain == "one two\nthree\nfour five\nsix"
    assert first_lines(text, 9, 3).plain == "one two\nthree\nfour fi …"
    assert first_lines(text, 20, 2).plain == "one two three\nfour five …"

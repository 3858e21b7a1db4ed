"""Models on disk, of the catalogue, on the hub and on servers; and what is deleted."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.fake_hub import FakeHub
from localrun_testing.model_screens import ScreenApp, hub_with_models, known_machine, tiny_gguf
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.scripted_client import INFO
from localrun_tui.choice import Choice, Endpoint
from localrun_tui.endpoints import write_endpoints
from localrun_tui.model_sections import HubSection
from localrun_tui.models_screen import ModelsScreen
from textual.pilot import Pilot

from localrun.base.settings import write_setting


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setattr(HubSection, "DEBOUNCE", 0.05)
    with hub_with_models(tmp_path, monkeypatch) as running:
        yield running


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)


@pytest.fixture
def stored(home: Path) -> Path:
    """Two precisions of a model in the models folder."""
    folder = home / "models"
    folder.mkdir(parents=True)
    for name in ("mine-F16.gguf", "mine-F32.gguf"):
        tiny_gguf(folder, name)
    return folder


def test_what_is_on_disk(stored: Path) -> None:
    write_setting("model", "builtin")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "mine")
        shown = screen_text(pilot.app)
        assert "builtin  default" in shown
        assert shown.count("models folder") == 2
        await pilot.press("slash", *"f32 mine")
        assert "builtin" not in screen_text(pilot.app).partition("NAME")[2]
        await pilot.press("enter", "enter")
        await until_text(pilot, "LONGEST")
        await pilot.press("enter")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(ModelsScreen())
    drive(app, steps)
    assert isinstance(app.answer, Choice)
    assert (app.answer.stored.name, app.answer.precision) == ("mine", "F32")
    assert (app.answer.ctx, app.answer.kv) == (None, "f16")


def test_nothing_but_a_way_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.hub.library.builtin_models", list)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "No model is on this machine yet")
        assert "catalogue (→)" in screen_text(pilot.app)
        await pilot.press("escape")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(ModelsScreen())
    drive(app, steps)
    assert app.answer is None


@pytest.mark.parametrize("size", [(80, 24), LARGE])
def test_the_catalogue_says_what_fits(size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("right")
        await until_text(pilot, "★")
        assert "Qwen3 8B  ★" in screen_text(pilot.app).partition("MODEL")[2].splitlines()[1]
        await pilot.press("slash", *"llama", "enter")
        shown = screen_text(pilot.app)
        assert "✘ no" in shown  # 70 B
        assert "✔ fits" in shown
        assert "llama3.2" in shown  # the licence
        assert "tok/s" in shown
        await pilot.press("end")
        assert "none of its precisions fits" in screen_text(pilot.app)
        await pilot.press("slash", *" no such word")
        assert "nothing here has the words" in screen_text(pilot.app)
        await pilot.press("escape")
        assert "Apache-2.0" in screen_text(pilot.app)

    drive(ScreenApp(ModelsScreen()), steps, size)


def test_the_hub_is_searched_a_moment_after_the_last_key(hub: FakeHub) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("right", "right")
        await until_text(pilot, "type what to look for")
        await pilot.press("slash", *"tiny")
        await until_text(pilot, "org/tiny-GGUF")
        shown = screen_text(pilot.app)
        assert "✔ fits ≈" in shown
        assert "apache-2.0" in shown
        await pilot.press("ctrl+u", *"locked")
        await until_text(pilot, "asks for consent")
        await pilot.press("ctrl+u", *"nowhere")
        await until_text(pilot, "The hub has nothing for “nowhere”")

    drive(ScreenApp(ModelsScreen()), steps, LARGE)
    terms = [seen.path for seen in hub.seen if seen.path == "/api/models"]
    assert len(terms) == 3  # not one a key


def test_the_hub_cannot_be_asked(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    async def offline(pilot: Pilot[Any]) -> None:
        await pilot.press("right", "right", "slash", *"tiny")
        await until_text(pilot, "localrun is offline")

    async def limited(pilot: Pilot[Any]) -> None:
        await pilot.press("right", "right", "slash", *"tiny")
        await until_text(pilot, "too many requests")
        hub.trouble.clear()
        await pilot.press("enter", "r")
        await until_text(pilot, "org/tiny-GGUF")

    hub.break_file("api", "rate-limit")
    drive(ScreenApp(ModelsScreen()), limited)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    before = len(hub.seen)
    drive(ScreenApp(ModelsScreen()), offline)
    assert len(hub.seen) == before


def test_leaving_does_not_wait_for_a_silent_hub(hub: FakeHub) -> None:
    hub.break_file("api", "silent")

    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("right", "right", "slash", *"tiny")
        await until_text(pilot, "Searching")
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.closed, 2)

    app = ScreenApp(ModelsScreen())
    drive(app, steps)


def test_foreign_names_are_text(hub: FakeHub, home: Path) -> None:
    folder = home / "models"
    folder.mkdir(parents=True)
    tiny_gguf(folder, "[red]evil[@click=app.quit]\x1b]0;pwned\x07\u202e-F16.gguf")
    hub.repos["org/tiny-GGUF"].card["license"] = "[bold]\x1b[31mfree"

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "[red]evil[@click=app.q")
        assert "\x1b" not in screen_text(pilot.app)
        await pilot.press("right", "right", "slash", *"tiny")
        await until_text(pilot, "[bold]free")

    drive(ScreenApp(ModelsScreen()), steps, LARGE)


def test_a_model_is_deleted_after_one_question(stored: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "mine")
        await pilot.press("slash", *"f16", "enter", "delete")
        await until_text(pilot, "Delete mine F16 from the disk?")
        assert "frees" in screen_text(pilot.app)
        await pilot.press("enter")  # the harmless button has the focus
        assert (stored / "mine-F16.gguf").exists()
        await pilot.press("delete")
        await until_text(pilot, "Delete mine F16")
        await pilot.press("y")
        await until_text(pilot, "are free again")

    drive(ScreenApp(ModelsScreen()), steps)
    assert [path.name for path in stored.iterdir()] == ["mine-F32.gguf"]


def test_what_is_in_use_or_not_ours_stays(stored: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "mine")
        await pilot.press("slash", *"f16", "enter", "delete")
        await until_text(pilot, "is in use")
        await pilot.press("escape", "slash", *"builtin", "enter", "delete")
        await until_text(pilot, "part of localrun")

    loaded = replace(INFO, path=str(stored / "mine-F16.gguf"))
    drive(ScreenApp(ModelsScreen(loaded)), steps)
    assert len(list(stored.iterdir())) == 2


def test_a_server_is_chosen(home: Path) -> None:
    write_endpoints([Endpoint("lab", "https://lab.example/v1", "sk-canary-123456", "big-model")])

    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("left")
        await until_text(pilot, "big-model")
        assert "what you write is sent there" in screen_text(pilot.app)
        assert "canary" not in screen_text(pilot.app)
        await pilot.press("enter")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(ModelsScreen())
    drive(app, steps, LARGE)
    assert app.answer.stored.model == "big-model"
    assert "canary" not in repr(app.answer)

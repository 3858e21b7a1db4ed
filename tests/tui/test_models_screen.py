"""Models on disk, of the catalogue, on the hub and on servers; and what is deleted."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import CHOICE
from localrun_testing.fake_chat_server import FakeChatServer, fake_chat_server
from localrun_testing.fake_hub import FakeHub
from localrun_testing.model_screens import ScreenApp, hub_with_models, known_machine
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until, until_text
from localrun_testing.scripted_client import INFO, ScriptedClient
from localrun_testing.stub_gguf import stub_gguf
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input

from localrun.base.errors import HubError
from localrun.base.file_use import FileUse
from localrun.base.request import ProgressCallback
from localrun.base.settings import read_settings, write_setting
from localrun.client.choice import ModelChoice
from localrun.client.model_slot import ModelSlot
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import write_endpoints
from localrun.client.worker.client import WorkerClient
from localrun.fit.rates import Rates
from localrun.hub import fits
from localrun.hub.catalogue_rows import catalogue_rows, first_model
from localrun.hub.disk.removal import Removal
from localrun.hub.disk.stored import StoredModel
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.remote import api
from localrun.hub.remote.preview import must_find_on_hub, preview
from localrun_tui.screens.dialogs.ask import AskText
from localrun_tui.screens.models.disk_section import DiskSection
from localrun_tui.screens.models.hub_section import HubSection
from localrun_tui.screens.models.model_items import disk_items
from localrun_tui.screens.models.model_rows import DiskRow, used_when
from localrun_tui.screens.models.models_screen import ModelsScreen
from localrun_tui.widgets.model_path_field import is_typed_path, longer_path


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with hub_with_models(tmp_path, monkeypatch) as running:
        yield running


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)


@pytest.fixture
def chat_server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        server.key = "sk-canary-123456"
        server.models = [{"id": "big-model", "max_model_len": 4096}]
        yield server


@pytest.fixture
def stored(home: Path) -> Path:
    """Two precisions of a model in the models folder."""
    folder = home / "models"
    folder.mkdir(parents=True)
    for name in ("mine-F16.gguf", "mine-F32.gguf"):
        stub_gguf(folder, name)
    return folder


def look_for(pilot: Pilot[Any], text: str) -> None:
    """What typing into the box does, without waiting for each key."""
    screen: ModelsScreen = pilot.app.screen  # type: ignore[assignment]
    screen.box.value = text


def test_what_is_on_disk_is_loaded_or_deleted(stored: Path) -> None:
    write_setting("model", "builtin")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "mine")
        shown = screen_text(pilot.app)
        assert "builtin  default" in shown
        assert shown.count("models folder") == 2
        await pilot.press("slash", *"f16", "enter", "delete")
        await until_text(pilot, "Delete mine F16 from the disk?")
        assert "frees" in screen_text(pilot.app)
        await pilot.press("enter")  # the harmless button has the focus
        assert (stored / "mine-F16.gguf").exists()
        await pilot.press("delete")
        await until_text(pilot, "Delete mine F16")
        await pilot.press("y")
        await until_text(pilot, "are free again")
        look_for(pilot, "mine")
        await pilot.press("m")
        await until_text(pilot, "mine  default")
        await pilot.press("delete")
        await until_text(pilot, "mine F32 is in use")
        look_for(pilot, "builtin")
        await pilot.press("delete")
        await until_text(pilot, "part of localrun")
        look_for(pilot, "f32")
        await pilot.press("enter")
        await until_text(pilot, "LONGEST")
        await pilot.press("enter")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(ModelsScreen(in_use=lambda: str(stored / "mine-F32.gguf")))
    drive(app, steps, LARGE)
    assert isinstance(app.answer, ModelChoice)
    assert app.answer.stored.name == "mine"
    assert (app.answer.precision, app.answer.ctx, app.answer.kv) == ("F32", 0, "f16")
    assert [path.name for path in stored.iterdir()] == ["mine-F32.gguf"]


@pytest.mark.skipif(os.name != "posix", reason="windows refuses to delete what is open by itself")
def test_another_program_that_has_a_model_loaded_is_named_before_it_is_deleted(stored: Path) -> None:
    use = FileUse(stored / "mine-F16.gguf")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "mine")
        await pilot.press("slash", *"f16", "enter", "delete")
        await until_text(pilot, "Delete mine F16 from the disk?")
        assert f"(process {os.getpid()})" in screen_text(pilot.app) or sys.platform != "linux"
        assert "cannot be loaded again" in " ".join(screen_text(pilot.app).split())
        await pilot.press("n")
        use.end()
        await pilot.press("delete")
        await until_text(pilot, "Delete mine F16 from the disk?")
        assert "in use" not in screen_text(pilot.app)

    drive(ScreenApp(ModelsScreen()), steps)


def test_a_model_that_was_deleted_elsewhere_is_said_to_be_gone(stored: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "mine")
        await pilot.press("slash", *"f16", "enter")
        (stored / "mine-F16.gguf").unlink()
        await pilot.press("enter")
        await until_text(pilot, "mine F16 is not on the disk any more")
        await until_text(pilot, "F32")
        (stored / "mine-F32.gguf").unlink()
        await pilot.press("escape", "enter")
        await until_text(pilot, "choose another: On disk in Models (Ctrl+O)")

    drive(ScreenApp(ModelsScreen()), steps, LARGE)


def test_what_is_pasted_beside_the_box_goes_into_it(stored: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "mine")
        screen = pilot.app.screen
        assert isinstance(screen, ModelsScreen)
        for text in ("mi\x1b[1mne", " f16"):  # in the list first, then in the box
            pilot.app.post_message(Paste(text))
            await pilot.pause()
        await until(pilot, lambda: screen.box.value == "mine f16")
        await until(pilot, lambda: "F32" not in screen_text(pilot.app))

    drive(ScreenApp(ModelsScreen()), steps)


def test_the_path_of_a_model_is_whole_at_80_columns(stored: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "mine")
        look_for(pilot, "f32")
        path = str(stored / "mine-F32.gguf")
        await until(pilot, lambda: path in "".join(screen_text(pilot.app).split()))

    drive(ScreenApp(ModelsScreen()), steps, SMALL)


def test_names_and_marks_are_whole_at_80_columns_and_owners_tell_namesakes_apart() -> None:
    def row(name: str) -> DiskRow:
        return DiskRow(StoredModel(name, "Q4_1", Path(f"/{name}.gguf"), 1, "gguf", "hub"))

    rows = [row("SomeLab/Small-135M-Instruct-GGUF"), row("one/twin-GGUF"), row("two/twin-GGUF")]
    shown = [item.row.lines(77)[0].plain for item in disk_items(rows, rows[0].model.path)]
    assert [line.split("  ")[0] for line in shown] == ["Small-135M-Instruct-GGUF", "one/twin-GGUF", "two/twin-GGUF"]
    assert "GGUF  default " in shown[0]
    app = ScreenApp(ModelsScreen())

    async def steps(pilot: Pilot[Any]) -> None:
        section = pilot.app.screen.query_one(DiskSection)
        await until_text(pilot, "builtin")
        section.show_only([one.model for one in rows])
        look_for(pilot, "somelab")  # which is not shown
        await until(pilot, lambda: [item.value.model.name for item in section.items] == [rows[0].model.name])

    drive(app, steps)


def test_letters_go_to_the_box_although_another_list_comes_behind_the_key(stored: Path) -> None:
    """→ and / right after it: the list is shown before the box was told that it has the focus."""

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "mine")
        screen.action_filter()
        screen._show_section()
        assert screen.focused is screen.box
        await pilot.press(*"mis")
        assert screen.box.value == "mis"

    screen = ModelsScreen()
    drive(ScreenApp(screen), steps)


def test_what_is_deleted_in_part_is_looked_at_again(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(plan: Removal) -> None:
        (stored / "mine-F16.gguf").unlink()
        raise HubError("cannot remove the rest", "check who owns it")

    monkeypatch.setattr(Removal, "execute", fail)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "F16")
        await pilot.press("slash", *"f16", "enter", "delete")
        await until_text(pilot, "Delete mine F16")
        await pilot.press("y")
        await until_text(pilot, "cannot remove the rest")
        look_for(pilot, "")
        await until(pilot, lambda: "F32" in screen_text(pilot.app) and "F16" not in screen_text(pilot.app))

    drive(ScreenApp(ModelsScreen()), steps, LARGE)


def test_a_model_is_listed_once_its_download_is_done(hub: FakeHub, home: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "builtin")
        http = Http(read_access())
        found = preview(http, must_find_on_hub("org/tiny-GGUF"))
        http.close()
        app.downloads.start(found, found.variants[0], "F16", 0, "auto")
        await until_text(pilot, "tiny-GGUF")

    app = ScreenApp(ModelsScreen())
    drive(app, steps, LARGE)


def test_a_search_says_what_it_waits_for(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "RETRY_SECONDS", (0.01,))
    hub.break_file("api", "rate-limit", times=1, at=2)

    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("slash", *"tiny")
        await until_text(pilot, "slow down (too many requests): waiting 2 s")
        assert "Searching for “tiny”" in screen_text(pilot.app)
        await until_text(pilot, "org/tiny-GGUF")

    drive(ScreenApp(ModelsScreen("hub")), steps, LARGE)


def test_a_default_model_that_is_deleted_is_the_default_no_more(stored: Path) -> None:
    write_setting("model", "mine")

    async def steps(pilot: Pilot[Any]) -> None:
        for precision, left in (("f16", "mine"), ("f32", None)):
            look_for(pilot, "")
            await until_text(pilot, "mine  default")
            look_for(pilot, precision)
            await pilot.press("delete")
            await until_text(pilot, "Delete mine")
            await pilot.press("y")
            await until_text(pilot, f"mine {precision.upper()} is deleted")
            told = [toast.message for toast in pilot.app._notifications]
            assert ("there is none now" in told[-1]) == (left is None)
            assert read_settings().model == left

    drive(ScreenApp(ModelsScreen()), steps, LARGE)


def test_the_catalogue_says_what_fits() -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "★")
        assert "Qwen3.5 4B  ★" in screen_text(pilot.app).partition("SPEED")[2].splitlines()[1]
        look_for(pilot, "llama")
        await pilot.press("end")  # 70 B
        await until_text(pilot, "slow: from disk")
        assert screen_text(pilot.app).count("Near the top of what runs at home") == 1  # in its row
        shown = screen_text(pilot.app)
        assert "◌ disk" in shown
        assert "✔ fits" in shown
        assert "llama3.1" in shown  # the licence
        look_for(pilot, "no such word")
        await until_text(pilot, "nothing here has the words")
        await until(pilot, lambda: "Choose" not in screen_text(pilot.app))
        await until_text(pilot, "Enter, then → looks for them on the hub.")
        await pilot.press("enter", "right")
        screen = pilot.app.screen
        assert isinstance(screen, ModelsScreen)
        await until(pilot, lambda: isinstance(screen.section, HubSection) and screen.section.term == "no such word")
        await pilot.press("left", "escape")
        await until_text(pilot, "Apache-2.0")
        await until_text(pilot, "Choose")
        await pilot.press("escape")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(ModelsScreen(section="catalogue"))
    drive(app, steps)
    assert app.answer is None


def test_the_first_model_is_usual_fits_and_is_fluent(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = catalogue_rows(10 << 30, [])
    first = first_model(rows, 16 << 30)
    assert first is not None
    assert first.name == "qwen3.5-4b"  # the usual 9 B is too slow for 40 GB/s
    assert first_model(catalogue_rows(1 << 29, []), 16 << 30) is None


@pytest.mark.parametrize(
    ("rates", "name"),
    [
        (Rates(400e9, 200e9), "qwen3.5-9b"),
        (Rates(30e9, 200e9), "qwen3.5-2b"),
        (Rates(15e9, 200e9), "llama-3.2-1b"),  # the smallest usual one would answer slower than one reads
        (Rates(15e9, 200e9, idle=False), "qwen3.5-2b"),  # this may be for the other programs
        (Rates(3e9, 200e9, idle=False), "qwen3.5-2b"),
        (Rates(1e9, 200e9), "qwen2.5-0.5b"),  # none answers as fast: the fastest
    ],
)
def test_the_first_model_is_not_moved_by_other_programs(
    monkeypatch: pytest.MonkeyPatch, rates: Rates, name: str
) -> None:
    """It went to a mixture of 8 B while others computed: on a slow machine the largest fluent one was taken."""
    monkeypatch.setattr(fits, "machine_rates", lambda: rates)
    first = first_model(catalogue_rows(20 << 30, []), 16 << 30)
    assert first is not None
    assert first.name == name


def test_the_hub_is_searched_once_typing_stops(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("right", "right")
        await until_text(pilot, "type what to look for")
        monkeypatch.setattr(HubSection, "DEBOUNCE", 1.0)  # longer than a busy machine takes to type
        for text in ("ti", "tin", "tiny"):
            look_for(pilot, text)
            await pilot.pause()
        await until_text(pilot, "org/tiny-GGUF")
        shown = screen_text(pilot.app)
        assert "✔ fits ≈" in shown
        assert "apache-2.0" in shown
        assert len([seen for seen in hub.seen if seen.path == "/api/models"]) == 1
        monkeypatch.setattr(HubSection, "DEBOUNCE", 0.01)
        look_for(pilot, "~/my-models")
        await until_text(pilot, "Tab completes it, Enter opens it")
        look_for(pilot, "locked")
        await until_text(pilot, "asks for consent")
        assert len([seen for seen in hub.seen if seen.path == "/api/models"]) == 2
        look_for(pilot, "nowhere")
        await until_text(pilot, "The hub has nothing for “nowhere”")
        hub.break_file("api", "rate-limit")
        look_for(pilot, "tiny-gguf")
        await until_text(pilot, "too many requests")
        hub.trouble.clear()
        await pilot.press("r")
        await until_text(pilot, "org/tiny-GGUF")
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        before = len(hub.seen)
        look_for(pilot, "tiny")
        await until_text(pilot, "localrun is offline")
        assert len(hub.seen) == before
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        hub.break_file("api", "silent", at=600)
        look_for(pilot, "silence")
        await until_text(pilot, "Searching for “silence”")
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.closed, 20)  # nobody waits for a silent hub

    app = ScreenApp(ModelsScreen())
    drive(app, steps, LARGE)


def test_foreign_names_are_text_and_a_server_is_chosen(hub: FakeHub, chat_server: FakeChatServer, home: Path) -> None:
    folder = home / "models"
    folder.mkdir(parents=True)
    evil = folder / "[red]evil[@click=app.quit]\x1b]0;pwned\x07\u202e-F16.gguf"
    stub_gguf(folder, evil.name)
    hub.repos["org/tiny-GGUF"].card["license"] = "[bold]\x1b[31mfree"
    write_endpoints([Endpoint("lab", chat_server.url, "sk-canary-123456"), Endpoint("off", "http://127.0.0.1:9")])

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "[red]evil[@click=app.q")
        look_for(pilot, "evil")
        await pilot.press("delete")
        await until_text(pilot, "is in use")
        assert "pwned" not in screen_text(pilot.app)
        assert "\x1b" not in screen_text(pilot.app)
        await pilot.press("right", "right")
        look_for(pilot, "tiny")
        await until_text(pilot, "[bold]free")
        assert "\x1b" not in screen_text(pilot.app)
        look_for(pilot, "")
        await pilot.press("right")
        await until_text(pilot, "big-model")
        await until_text(pilot, "nothing listens at 127.0.0.1:9")
        assert "what you write is sent to http://127.0.0.1" in screen_text(pilot.app)
        assert "canary" not in screen_text(pilot.app)
        await pilot.press("enter")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(ModelsScreen(in_use=lambda: str(evil)))
    drive(app, steps, LARGE)
    assert app.answer.stored.model == "big-model"
    assert "canary" not in repr(app.answer)


def test_a_model_that_is_being_loaded_is_in_use() -> None:
    """Its file could be deleted until it was there."""
    gate = threading.Event()

    def open_client(choice: ModelChoice, progress: ProgressCallback) -> ScriptedClient:
        gate.wait()
        return ScriptedClient(info=replace(INFO, path="/models/as-it-is-now.gguf"))

    async def steps() -> None:
        slot = ModelSlot(open_client)
        assert slot.path_in_use() == ""
        load = asyncio.create_task(slot.load(CHOICE, lambda done, total: None))
        while not slot.loading:
            await asyncio.sleep(0)
        assert isinstance(CHOICE.stored, StoredModel)
        assert slot.path_in_use() == str(CHOICE.stored.path)
        gate.set()
        await load
        assert slot.path_in_use() == "/models/as-it-is-now.gguf"

    asyncio.run(steps())


def test_what_the_loaded_model_holds_counts_as_free() -> None:
    """Weights, cache and buffers: all that goes before the next model comes."""
    screen = ModelsScreen(held_bytes=lambda: 5 << 30)
    assert screen.budget() == (10 << 30) + (5 << 30)
    slot = ModelSlot(lambda choice, progress: ScriptedClient())
    assert slot.held_bytes() == 0
    slot.client = ScriptedClient()
    assert slot.held_bytes() == INFO.weights_bytes, "what is known of an engine that is no process"
    held = worker_client()
    slot.client = held
    assert slot.held_bytes() == 7 << 30


def worker_client() -> WorkerClient:
    client = object.__new__(WorkerClient)
    client.held_bytes = lambda: 7 << 30  # type: ignore[method-assign]
    client._info = INFO
    return client


def test_when_a_model_was_used() -> None:
    noon = 1_790_000_000.0
    day = 86_400
    assert [used_when(at, noon) for at in (None, noon, noon - day, noon - 3 * day)] == [
        "",
        "today",
        "yesterday",
        "3 days ago",
    ]
    assert used_when(noon - 30 * day, noon)[:2] == "20"


def test_a_model_is_opened_by_its_path_and_several_are_listed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("own-F16.gguf", "other-F32.gguf"):
        stub_gguf(elsewhere, name)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "builtin")
        await pilot.press("slash")
        look_for(pilot, str(elsewhere / "own-F16.gguf"))
        await until_text(pilot, "Tab completes it, Enter opens it")
        await pilot.press("enter")
        await until_text(pilot, "LONGEST")
        assert "own" in screen_text(pilot.app).splitlines()[0]
        await pilot.press("escape")
        look_for(pilot, "")
        await until_text(pilot, "builtin")
        await pilot.press("escape", "f")
        await until_text(pilot, "Open a file or a folder")
        pilot.app.screen.query_one(Input).value = str(elsewhere)
        await pilot.press("enter")
        await until(pilot, lambda: "builtin" not in screen_text(pilot.app))
        assert "own" in screen_text(pilot.app)
        await pilot.press("slash", *"other", "enter", "enter")
        await until_text(pilot, "✔ fits")
        await pilot.press("enter")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(ModelsScreen())
    drive(app, steps, LARGE)
    assert app.answer.stored.path == elsewhere / "other-F32.gguf"


def test_a_path_that_is_no_model_says_why(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "builtin")
        await pilot.press("slash")
        look_for(pilot, f"{tmp_path}/")
        await pilot.press("enter")
        await until_text(pilot, "there is no model in the folder")

    drive(ScreenApp(ModelsScreen()), steps, LARGE)


def test_a_path_is_completed_as_in_a_shell(tmp_path: Path) -> None:
    for name in (".hidden", "other", "own models"):
        (tmp_path / name).mkdir()
    stub_gguf(tmp_path / "own models", "own-F16.gguf")
    (tmp_path / "own models" / "notes.txt").touch()

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "builtin")
        await pilot.press("slash")
        box = pilot.app.screen.query_one("#filter", Input)
        for typed, whole in [(f"{tmp_path}/ow", f"{tmp_path}/own models/"), ("", "own-F16.gguf")]:
            look_for(pilot, box.value + typed)
            box.cursor_position = len(box.value)
            await until_text(pilot, "⏎ Open the path")
            await until(pilot, lambda: bool(box._suggestion))
            await pilot.press("tab")
            assert box.value.endswith(whole)
        await pilot.press("tab")  # nothing to complete
        assert not box.has_focus
        await pilot.press("slash", "enter")
        await until_text(pilot, "LONGEST")

    drive(ScreenApp(ModelsScreen()), steps, SMALL)
    assert longer_path(f"{tmp_path}/.h") == f"{tmp_path}/.hidden/"
    assert longer_path(f"{tmp_path}/nothing") is longer_path(f"{tmp_path}/x/y") is longer_path("~nobody9/x") is None


def test_a_wrong_path_is_asked_for_again(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "builtin")
        await pilot.press("f")
        await until_text(pilot, "Tab completes, Enter opens it, Escape leaves it as it was")
        assert "it stays in this list once it was loaded" in " ".join(screen_text(pilot.app).replace("│", " ").split())
        await pilot.press(*"nowhere")
        await pilot.press("enter")
        await until_text(pilot, "there is no")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
        assert pilot.app.screen.query_one(Input).value == "~/nowhere"

    drive(ScreenApp(ModelsScreen()), steps, SMALL)


@pytest.mark.parametrize(
    ("text", "is_path"),
    [("/x", True), ("~/x", True), ("./x", True), ("x.GGUF", True), ("qwen 4b", False), ("a/b", False)],
)
def test_paths_are_told_from_words(text: str, is_path: bool) -> None:
    assert is_typed_path(text) is is_path

"""From the first screen to a chat with the recommended model, by one key: the built-in model answers meanwhile."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import chat_screen, send
from localrun_testing.fake_hub import FakeHub, FakeRepo
from localrun_testing.model_screens import hub_with_models, known_machine
from localrun_testing.pilots import drive, until, until_text
from localrun_testing.scripted_client import INFO, ScriptedClient
from localrun_testing.stub_gguf import stub_gguf
from textual.pilot import Pilot

from localrun.base.request import ProgressCallback
from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice
from localrun.hub.catalogue import read_catalogue, shown_name
from localrun_tui.app import LocalrunApp
from localrun_tui.screens.first_run import FirstRunScreen

TITLE = read_catalogue()["qwen3.5-4b"]["title"]
REPO = read_catalogue()["qwen3.5-4b"]["gguf"]


def app_that_loads(loads: list[ModelChoice]) -> LocalrunApp:
    def open_client(choice: ModelChoice, progress: ProgressCallback) -> ScriptedClient:
        loads.append(choice)
        return ScriptedClient(info=replace(INFO, name=choice.stored.name, precision=choice.precision))

    return LocalrunApp(open_client, lambda: ChatStore(None), lambda: None)


def hub_with_the_recommended(folder: Path) -> FakeHub:
    file = stub_gguf(folder, "Qwen3.5-4B-Q4_K_M.gguf")
    return FakeHub({REPO: FakeRepo({"Qwen3.5-4B-Q4_K_M.gguf": file})})


def test_it_is_downloaded_and_loaded_while_the_builtin_model_answers(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_machine(monkeypatch)
    loads: list[ModelChoice] = []
    app = app_that_loads(loads)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, f"Get {TITLE}")
        await pilot.press("up", "enter")
        await until_text(pilot, "builtin")
        await send(pilot, "hello")
        await until_text(pilot, "Hello!")
        hub.bytes_per_second = None
        await until(pilot, lambda: len(loads) == 2)
        await until_text(pilot, f"{TITLE} Q4_K_M")

    with hub_with_models(tmp_path, monkeypatch), hub_with_the_recommended(tmp_path) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.bytes_per_second = 20_000.0
        drive(app, steps)
    assert [choice.stored.name for choice in loads] == ["builtin", REPO]


def test_without_a_network_it_is_said_and_the_builtin_model_answers(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_machine(monkeypatch)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    loads: list[ModelChoice] = []
    app = app_that_loads(loads)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, f"Get {TITLE}")
        await pilot.press("up", "enter")
        await until_text(pilot, f"{TITLE} cannot be had now")
        await until(pilot, lambda: loads)

    drive(app, steps)


def test_a_message_without_a_model_opens_the_choice_and_is_answered_after_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_machine(monkeypatch)
    loads: list[ModelChoice] = []
    app = app_that_loads(loads)

    async def steps(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FirstRunScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is chat_screen(pilot))
        await send(pilot, "hello")
        await until_text(pilot, "On disk")
        await until_text(pilot, "builtin")
        await pilot.press("enter")
        await until_text(pilot, "on disk")
        await pilot.press("enter")
        await until_text(pilot, "Hello!")

    drive(app, steps)
    assert [choice.stored.name for choice in loads] == ["builtin"]


def test_one_model_has_one_name() -> None:
    assert {shown_name(name) for name in ("qwen3.5-4b", REPO, REPO.lower())} == {TITLE}
    assert shown_name("org/tiny-GGUF") == "tiny-GGUF"
    assert shown_name("builtin") == "builtin"

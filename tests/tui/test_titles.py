"""The model names a chat while nobody waits for it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, send
from localrun_testing.pilots import drive, until, until_text
from localrun_testing.scripted_client import INFO, Script, ScriptedClient
from textual.pilot import Pilot

from localrun.base.settings import write_setting
from localrun.chat.journal import ChatStore
from localrun_tui.state import title_giver


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, chats_are_not_named: None, home: Path) -> None:
    monkeypatch.setattr(title_giver, "IDLE", 0.01)


def test_a_chat_gets_a_title_once_and_not_after_the_user_named_it(tmp_path: Path) -> None:
    app, client = chat_app(Script("They sleep at sea."), Script("Puffins at Sea"), Script("More."), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "where do puffins sleep?")
        await until_text(pilot, "◆ Puffins at Sea")
        await ask(pilot, "and in winter?")
        await pilot.pause(0.2)
        assert len(client.requests) == 3

    drive(app, steps)
    assert [chat.title for chat in ChatStore(tmp_path).summaries()] == ["Puffins at Sea"]


def test_it_gives_way_to_a_message(tmp_path: Path) -> None:
    app, client = chat_app(Script("At sea."), Script("Never", never_ends=True), Script("Second."), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "where do puffins sleep?")
        await until(pilot, lambda: len(client.requests) == 2)
        await send(pilot, "and in winter?")
        await until_text(pilot, "Second.")

    drive(app, steps)


def test_the_setting_turns_it_off(tmp_path: Path) -> None:
    write_setting("titles", "off")
    app, client = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "where do puffins sleep?")
        await pilot.pause(0.2)
        assert chat_screen(pilot).session.chat is not None
        assert len(client.requests) == 1

    drive(app, steps)


@pytest.mark.parametrize("small", [True, False])
def test_a_server_names_a_chat_by_one_short_request_and_a_tiny_model_none(tmp_path: Path, small: bool) -> None:
    info = replace(INFO, weights_bytes=7 << 20) if small else replace(INFO, backend="remote", weights_bytes=0)
    scripts = [Script("They sleep at sea."), Script("Puffins at Sea"), Script("More.")]
    app, client = chat_app(client=ScriptedClient(scripts, info=info), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "where do puffins sleep? I never saw one.")
        await until_text(pilot, "◆ where do puffins sleep? " if small else "◆ Puffins at Sea")
        await pilot.pause(0.2)

    drive(app, steps)
    assert len(client.requests) == (1 if small else 2)
    assert all(not request.known_ids for request in client.requests[1:])

"""What a crash of the app leaves: the half answer, and the message that waited for it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import chat_app, chat_screen, ready, send, text_of, views
from localrun_testing.pilots import drive, until, until_text
from localrun_testing.scripted_client import Script
from textual.pilot import Pilot

from localrun.chat.journal import ChatStore
from localrun_tui.state import turn

STORY = "There was once a fox who was afraid of the wind."


def test_the_half_answer_and_what_waited_are_there_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "_BETWEEN_HALVES", 0.05)
    folder, left = tmp_path / "chats", tmp_path / "left by a crash"
    app, _ = chat_app(Script(STORY, thinking="a fox?", delay=0.02, never_ends=True), folder=folder)

    async def crash(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "a story")
        await until_text(pilot, "fox who")
        await send(pilot, "make it longer")
        await send(pilot, "and sadder")
        await until_text(pilot, "2 messages wait")
        await until(pilot, lambda: half_of(folder).startswith("There was once a fox"))
        shutil.copytree(folder, left)

    async def come_back(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+l", "enter")
        await until_text(pilot, "a fox who")
        assert "cut off: localrun ended" in " ".join(text_of(views(pilot)[-1]).split())
        await until_text(pilot, "2 messages held: ↑ shows them")
        await pilot.press("escape", "ctrl+up", "up")
        await until_text(pilot, "⏎ Send now")
        await pilot.press("enter")
        await until(pilot, lambda: len(views(pilot)) == 6 and not chat_screen(pilot).session.answering)

    drive(app, crash)
    again, engine = chat_app(Script("Here it is."), folder=left)
    drive(again, come_back)
    assert [message["content"] for message in engine.requests[1].messages][2::2] == ["make it longer", "and sadder"]
    chat = ChatStore(left).open(ChatStore(left).summaries()[0].id)
    assert chat.waiting == ()
    assert [message.text for message in chat.tree.path(chat.tree.head)][2::2] == ["make it longer", "and sadder"]


def half_of(folder: Path) -> str:
    """What another program reads of the answer that is on its way."""
    store = ChatStore(folder)
    tree = store.open(store.summaries()[0].id).tree
    return tree.messages()[-1].text


def test_what_waits_in_one_chat_is_not_sent_in_another(tmp_path: Path) -> None:
    app, engine = chat_app(Script("Hello!", never_ends=True), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "first")
        await until_text(pilot, "Hello!")
        await send(pilot, "second")
        await until_text(pilot, "1 message waits")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: not views(pilot))
        await pilot.press("ctrl+l", "enter")
        await until_text(pilot, "1 message held: ↑ shows it")

    drive(app, steps)
    assert len(engine.requests) == 1

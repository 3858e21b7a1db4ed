"""Images go along with a message as chips, are looked at with progress, and stay with their chat."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready
from localrun_testing.pilots import drive, screen_text, until, until_text
from localrun_testing.scripted_client import INFO, Script, ScriptedClient
from PIL import Image
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from localrun.base.content import ImagePart
from localrun.base.events import ImageProgress
from localrun.chat.journal import ChatStore

CHIP = "▣ cat.png 8 × 5"


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    Image.fromarray(np.zeros((5, 8, 3), dtype=np.uint8)).save(path)
    return path


async def drop(pilot: Pilot[Any], path: Path) -> None:
    """As a terminal does with a file that is dropped on it."""
    await ready(pilot)
    pilot.app.post_message(events.Paste(str(path)))
    await until_text(pilot, f"attach {path.name}")
    await pilot.press("enter")
    await until(pilot, lambda: chat_screen(pilot).composer.attachments)


def test_a_dropped_image_goes_along_and_is_sent_again_after_a_restart(cat: Path, home: Path) -> None:
    folder = home / "chats"
    app, client = chat_app(folder=folder)

    async def steps(pilot: Pilot[Any]) -> None:
        await drop(pilot, cat)
        assert CHIP in screen_text(app)
        await ask(pilot, "what is it?")
        assert CHIP in screen_text(app), "above the text of the message"
        assert chat_screen(pilot).composer.attachments == []

    drive(app, steps)
    cat.unlink()
    (image,) = client.requests[0].images
    assert image.path is not None
    assert image.path.parent == folder / "images"
    again, client = chat_app(folder=folder)
    chat_id = ChatStore(folder).summaries()[0].id

    async def more(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await chat_screen(pilot).session.open_chat(chat_id)
        await until_text(pilot, CHIP)
        await ask(pilot, "sure?")

    drive(again, more)
    assert client.requests[0].images == (image,)


def test_an_image_is_attached_by_its_path_and_a_broken_one_is_refused(cat: Path) -> None:
    app, _ = chat_app()
    broken = cat.with_name("broken.png")
    broken.write_bytes(b"no image")

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.screen.query("#answer"))
        app.screen.query_one("#answer", Input).value = str(broken)
        await pilot.press("enter")
        await until_text(pilot, "no image of a known kind")
        app.screen.query_one("#answer", Input).value = str(cat)
        await pilot.press("enter")
        await until_text(pilot, CHIP)

    drive(app, steps)


def test_a_model_that_does_not_see_is_named_before_anything_is_sent(cat: Path) -> None:
    app, client = chat_app(client=ScriptedClient(info=replace(INFO, why_blind="choose a model that sees")))

    async def steps(pilot: Pilot[Any]) -> None:
        await drop(pilot, cat)
        await pilot.press(*"what?", "enter")
        await until(pilot, lambda: "sees no images" in notice(pilot))
        assert "choose a model that sees" in notice(pilot)
        composer = chat_screen(pilot).composer
        assert composer.editor.text == "what?"
        assert [type(one) for one in composer.attachments] == [ImagePart]
        await pilot.press("home", "ctrl+w")
        await ask(pilot, "")

    drive(app, steps)
    (request,) = client.requests
    assert (request.images, request.messages[-1]["content"]) == ((), "what?")


def test_looking_at_an_image_is_told_and_can_be_stopped(cat: Path) -> None:
    app, client = chat_app(Script(prefill=(ImageProgress(0, 2, 0.4),), never_reads_all=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await drop(pilot, cat)
        await pilot.press(*"what?", "enter")
        await until_text(pilot, "● looking at image 1 of 2: 40%")
        await pilot.press("escape")
        await until(pilot, lambda: not chat_screen(pilot).session.answering)
        assert CHIP in screen_text(app)

    drive(app, steps)
    assert len(client.requests) == 1


def test_an_edited_message_keeps_its_image(cat: Path) -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await drop(pilot, cat)
        await ask(pilot, "what?")
        composer, (question, _) = chat_screen(pilot).composer, chat_screen(pilot).transcript.views
        assert question.message is not None
        composer.edit(question.message.id, question.message.content)
        assert [type(one) for one in composer.attachments] == [ImagePart]
        await pilot.press(*"! ", "enter")
        await until(pilot, lambda: len(client.requests) == 2)

    drive(app, steps)
    assert client.requests[1].images == client.requests[0].images
    assert client.requests[1].messages[-1]["content"][-1]["text"] == "what?!"

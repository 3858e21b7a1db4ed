"""What was typed and not sent is there again, whatever ended the app."""

import errno
import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, send, type_text
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from PIL import Image
from textual.pilot import Pilot

from localrun.base.content import FilePart, TextPart
from localrun.base.paths import writable_folder
from localrun.chat.images import IMAGES, ImageShelf
from localrun_tui.screens.chat import draft_keeper
from localrun_tui.state import draft
from localrun_tui.state.draft import keep_draft, take_draft
from localrun_tui.state.process_mark import own_mark, runs_elsewhere

DRAFT = (FilePart("notes.md", "words\n"), TextPart("half of a question"))


@pytest.fixture
def chats() -> Path:
    place = writable_folder("chats")
    assert place is not None
    return place


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_keeper, "SECONDS", 0.01)


def no_images() -> ImageShelf:
    raise AssertionError("none is in it")


def picture(path: Path, side: int) -> Path:
    Image.new("RGB", (side, side)).save(path)
    return path


def names(chats: Path) -> list[str]:
    return sorted(path.name for path in chats.glob("draft*"))


def test_a_draft_is_on_disk_while_it_is_typed_and_gone_once_it_is_sent(chats: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "half of a")
        await until(pilot, lambda: names(chats) == [f"draft-{own_mark()}.json"])
        await send(pilot, " question")
        await until(pilot, lambda: names(chats) == [])
        await ask(pilot, "another one")

    drive(app, steps)
    assert names(chats) == []


def test_what_was_typed_comes_back_after_quitting(chats: Path) -> None:
    app, _ = chat_app()
    again, _ = chat_app()

    async def leave(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        chat_screen(pilot).composer.continue_chat(DRAFT)
        await pilot.press("ctrl+q")

    async def come_back(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await until(pilot, lambda: composer.editor.text == "half of a question")
        assert composer.attachments == [DRAFT[0]]
        assert len(names(chats)) == 1, "kept until it is sent"

    drive(app, leave)
    drive(again, come_back)


def test_a_draft_that_cannot_be_kept_is_not_lost_by_quitting(chats: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(draft, "write_whole", full)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "half of a question")
        await pilot.press("ctrl+q")
        await until_text(pilot, "What you were writing is lost")
        await pilot.press("n")
        await until(pilot, lambda: app.screen is chat_screen(pilot))
        assert chat_screen(pilot).composer.editor.text == "half of a question"
        await pilot.press("ctrl+q")
        await until_text(pilot, "What you were writing is lost")
        await pilot.press("y")

    drive(app, steps)
    assert app.return_code == 0


def test_drafts_of_apps_that_ended_become_one_and_those_of_others_stay(chats: Path) -> None:
    others = f"draft-{mark_of(os.getppid())}.json"
    for age, name in enumerate((others, "draft-7-x.json", "draft-999999999-1.json")):
        assert keep_draft((TextPart(name),))
        os.replace(chats / f"draft-{own_mark()}.json", chats / name)
        os.utime(chats / name, (age, age))
    taken = (TextPart("draft-7-x.json\n\ndraft-999999999-1.json"),)
    assert take_draft(no_images).content == taken
    assert names(chats) == sorted([others, f"draft-{own_mark()}.json"]), "this app's own from then on"
    assert take_draft(no_images).content == taken


def test_marks_tell_processes_apart() -> None:
    assert not runs_elsewhere(own_mark())
    assert not any(runs_elsewhere(mark) for mark in ("", "-", "1", "a-b", f"{os.getpid()}-1", "99999999999999999999-5"))
    assert runs_elsewhere(mark_of(os.getppid()))


def mark_of(pid: int) -> str:
    return f"{pid}-{int(psutil.Process(pid).create_time())}"


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"text": 1, "parts": 7}', '{"parts": []}', "[" * 100_000])
def test_a_damaged_draft_is_none_or_its_text(damaged: str, chats: Path) -> None:
    (chats / "draft-1-1.json").write_text(damaged)
    draft = take_draft(no_images)
    assert (draft.content, len(draft.gone)) in (((), 1), ((TextPart("1"),), 0))
    assert take_draft(no_images).content == draft.content


def test_a_draft_says_when_it_was_written_and_what_is_gone_of_it(chats: Path) -> None:
    """Its origin is said until it is sent or deleted."""
    shelf = ImageShelf(chats / IMAGES)
    kept, lost = (shelf.attach(one) for one in (picture(chats / "kept.png", 8), picture(chats / "lost.png", 9)))
    assert keep_draft((kept, lost, TextPart("what is this?")))
    left = chats / "draft-999999999-1.json"
    os.replace(chats / f"draft-{own_mark()}.json", left)
    long_ago = time.time() - 3 * 24 * 3600 - 60
    os.utime(left, (long_ago, long_ago))
    (chats / IMAGES / lost.sha256).unlink()
    app, _ = chat_app(folder=chats)

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await until_text(pilot, "Your draft of 3 days ago")
        await until_text(pilot, "Not in your draft any more")
        assert "lost.png" in screen_text(app)
        assert composer.attachments == [kept]
        await ready(pilot)
        await pilot.press("ctrl+u")
        assert composer.border_title, "the image is still there"
        await pilot.press("ctrl+w")
        await until(pilot, lambda: composer.border_title is None)

    drive(app, steps, LARGE)

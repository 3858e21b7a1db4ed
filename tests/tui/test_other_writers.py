"""Two programs that write in one chat: each says what the other wrote, and nothing is lost."""

from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, sources
from localrun_testing.pilots import drive, screen_text, until, until_text
from localrun_testing.scripted_client import Script
from textual.pilot import Pilot

from localrun.chat.journal import Chat, ChatStore
from localrun_tui.screens.chat import chat_screen as screen_module


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "SECONDS", 0.05)


def elsewhere(folder: Path) -> Chat:
    """The only chat, as another program has it open."""
    store = ChatStore(folder)
    return store.open(store.summaries()[0].id)


async def all_is_read(pilot: Pilot[Any]) -> None:
    chat = chat_screen(pilot).session.chat
    assert chat is not None
    await until(pilot, lambda: not chat.has_grown)


def test_what_another_app_writes_below_is_shown_once_it_is_answered(tmp_path: Path) -> None:
    app, _ = chat_app(Script("one"), Script("three"), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "first?")
        other = elsewhere(tmp_path)
        question = other.add_user("second?")
        await until_text(pilot, "Another localrun asks in this chat")
        assert sources(pilot) == ["first?", "one"]
        draft = other.draft(question.id)
        chat_screen(pilot).pane.notice.say("what stands there now")
        draft.write("tw")
        await all_is_read(pilot)
        assert notice(pilot) == "what stands there now", "the same is said once"
        assert sources(pilot) == ["first?", "one"]
        other.add_answer(question.id, "two", draft=draft)
        await until_text(pilot, "you see it now")
        assert sources(pilot) == ["first?", "one", "second?", "two"]
        await ask(pilot, "third?")
        assert sources(pilot)[-3:] == ["two", "third?", "three"]
        assert notice(pilot) == ""

    drive(app, steps)
    assert [message.text for message in elsewhere(tmp_path).tree.messages()][-1] == "three"


def test_what_both_asked_at_once_are_branches_and_the_own_one_stays(tmp_path: Path) -> None:
    app, _ = chat_app(Script("one"), Script("mine."), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "first?")
        other = elsewhere(tmp_path)
        await ask(pilot, "mine?")
        question = other.add_user("theirs?")
        other.add_answer(question.id, "theirs.")
        await until_text(pilot, "on another branch")
        assert sources(pilot) == ["first?", "one", "mine?", "mine."]
        await until_text(pilot, "‹ 1/2 ›")
        await pilot.press("ctrl+up", "up", "right")
        await until(pilot, lambda: sources(pilot)[2:] == ["theirs?", "theirs."])

    drive(app, steps)
    texts = {message.text for message in elsewhere(tmp_path).tree.messages()}
    assert texts == {"first?", "one", "mine?", "mine.", "theirs?", "theirs."}


def test_a_chat_that_is_deleted_elsewhere_says_so(tmp_path: Path) -> None:
    app, _ = chat_app(Script("one"), Script("two"), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "first?")
        ChatStore(tmp_path).delete(ChatStore(tmp_path).summaries()[0].id)
        await until_text(pilot, "deleted this chat")
        await ask(pilot, "second?")

    drive(app, steps)
    assert ChatStore(tmp_path).summaries()[0].n_messages == 4


def test_own_words_and_settings_are_no_news(tmp_path: Path) -> None:
    app, _ = chat_app(Script("one"), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "first?")
        chat = chat_screen(pilot).session.chat
        assert chat is not None
        assert not chat.has_grown
        elsewhere(tmp_path).set(pinned=True)
        await all_is_read(pilot)
        assert "Another localrun" not in screen_text(app)

    drive(app, steps)

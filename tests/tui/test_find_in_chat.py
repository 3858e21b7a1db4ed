"""Finding words in the chat that is open, by keys."""

from pathlib import Path
from typing import Any

from localrun_testing.chat_app import chat_app, chat_screen, ready
from localrun_testing.pilots import SMALL, drive, screen_text, until, until_text
from textual.pilot import Pilot

from localrun.base.content import as_content
from localrun.chat.journal import ChatStore
from localrun.chat.search import places
from localrun.chat.tree import Message
from localrun_tui.screens.chat.editor import Editor


def test_every_word_has_to_begin_a_word_of_the_message() -> None:
    messages = [
        Message(str(n), None, "user", as_content(text)) for n, text in enumerate(("Café au lait", "a cafe", "late"))
    ]
    assert places(messages, "cafe") == ["0", "1"]
    assert places(messages, "lait cafe") == ["0"]
    assert places(messages, "afe") == []
    assert places(messages, " ") == []


def test_one_goes_from_hit_to_hit_however_far_up_and_comes_back(tmp_path: Path) -> None:
    store = ChatStore(tmp_path)
    chat = store.create(model="qwen3-4b")
    chat.add_answer(chat.add_user("where do puffins sleep?").id, "At sea. " * 40)
    for number in range(40):
        chat.add_answer(chat.add_user(f"question {number}").id, f"answer {number}")
    chat.add_answer(chat.add_user("and puffins again?").id, "Yes.")
    store.close()
    app, _ = chat_app(folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await chat_screen(pilot).session.open_chat(chat.id)
        await until_text(pilot, "and puffins again?")
        await pilot.press("ctrl+f", *"puffins")
        await until_text(pilot, "2 of 2")
        await pilot.press("up")
        await until_text(pilot, "1 of 2")
        await until_text(pilot, "where do puffins sleep?")
        await pilot.press("down")
        await until_text(pilot, "2 of 2")
        await until_text(pilot, "and puffins again?")
        await pilot.press(*"xyz")
        await until_text(pilot, "not found in this chat")
        await pilot.press("escape")
        await until(pilot, lambda: "nowhere" not in screen_text(app))
        assert isinstance(app.focused, Editor)

    drive(app, steps, SMALL)

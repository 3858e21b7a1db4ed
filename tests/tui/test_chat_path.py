"""The messages on the screen follow the chat, whatever happens at the same time."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, send, sources, text_of, views
from localrun_testing.pilots import drive, screen_text, until, until_text
from localrun_testing.scripted_client import COMPLETION, Script
from localrun_testing.waiting import PATIENCE
from textual.pilot import Pilot

from localrun.base.events import CacheFigures
from localrun.chat.commands import adapters_in
from localrun_tui.screens.chat import live_answer
from localrun_tui.screens.chat.chat_path import ChatPath
from localrun_tui.screens.chat.transcript import Transcript
from localrun_tui.state.branches import Branches


def test_an_answer_that_ends_during_a_rebuild_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app(Script("42", thinking="six times seven", never_ends=True))
    show, show_kept = Transcript.show, ChatPath.show_kept
    showing, settling, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def show_slowly(*arguments: Any, **options: Any) -> None:
        await show(*arguments, **options)
        showing.set()
        await may_end.wait()

    async def settle_meanwhile(*arguments: Any) -> bool:
        settling.set()
        return await show_kept(*arguments)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "6 * 7?")
        await until_text(pilot, "42")
        monkeypatch.setattr(Transcript, "show", show_slowly)
        monkeypatch.setattr(ChatPath, "show_kept", settle_meanwhile)
        screen = chat_screen(pilot)
        screen.run_guarded(screen.pane.show(rebuild=True))
        await showing.wait()
        await screen.session.stop()
        await settling.wait()
        await asyncio.sleep(0)
        may_end.set()
        await until(pilot, lambda: screen.path.live is None)
        assert sources(pilot) == ["6 * 7?", "42"]
        assert "Thought for" in screen_text(app)

    drive(app, steps)


def test_an_answer_is_kept_when_it_is_over_not_when_it_would_be_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app(Script("42"))
    for seconds in ("_SHORTEST", "_LONGEST"):
        monkeypatch.setattr(live_answer, seconds, 10 * PATIENCE)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "6 * 7?")
        assert sources(pilot) == ["6 * 7?", "42"]

    drive(app, steps)


def test_why_a_chat_was_read_again() -> None:
    """One that answers first in a chat had not read it: another model or precision, or the model with an adapter."""
    unread = replace(COMPLETION, cached_tokens=0, cache=CacheFigures(cache_note="never seen before"))
    other = replace(unread, precision="Q8_0")
    app, _ = chat_app(Script(completion=unread), *(Script(completion=other) for _ in range(5)))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        for question, why in (
            ("one", ""),
            ("two", "another precision wrote the answer before"),
            ("three", "never seen before"),
            ("four", "other adapters wrote the answer before"),
            ("five", "never seen before"),
            ("six", "the answer before was edited"),
        ):
            if question == "four":
                session = chat_screen(pilot).session
                assert session.present is not None
                session.present = replace(session.present, adapters=adapters_in("style.gguf"))
            if question == "six":
                session = chat_screen(pilot).session
                assert session.chat is not None
                assert session.chat.tree.head is not None
                await Branches(session).edit(session.chat.tree.head, "as I say")
                await until(pilot, lambda: sources(pilot)[-1] == "as I say")
            await ask(pilot, question)
            note = re.sub(r"\s+", " ", text_of(views(pilot)[-1]))
            assert (f"read again: {why}" if why else "") in note
            assert ("read again" in note) is bool(why)

    drive(app, steps)

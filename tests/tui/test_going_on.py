"""An answer that was cut goes on, and one that was changed; what the model would see is counted and shown."""

from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.chat_app import ENDS, ask, chat_app, chat_screen, notice, ready, send, sources, type_text, views
from localrun_testing.pilots import SMALL, drive, screen_text, until, until_text
from localrun_testing.scripted_client import COMPLETION, Script
from textual.pilot import Pilot

from localrun.base.views import PromptView
from localrun.chat.token_estimate import about_tokens
from localrun_tui.screens.dialogs.prompt_screen import CACHED, NEW, OUTSIDE, fate, token_rows
from localrun_tui.state.prompt_preview import DraftSize

CUT = Script("The moon pulls", completion=replace(COMPLETION, stop_reason="length"))


def test_a_cut_answer_goes_on_by_a_key_and_stays_as_a_branch() -> None:
    app, client = chat_app(CUT, Script(" the sea."))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "why tides?")
        await pilot.press("ctrl+up")
        await until_text(pilot, "g Go on")
        await pilot.press("g")
        await until(pilot, lambda: sources(pilot) == ["why tides?", "The moon pulls the sea."])
        await until_text(pilot, "‹ 2/2 ›")
        await until(pilot, lambda: chat_screen(pilot).path.live is None)
        await type_text(pilot, "/continue")
        chat_screen(pilot).composer.submit()
        await until(pilot, lambda: "was not cut" in notice(pilot))

    drive(app, steps)
    first, second = client.requests
    assert (first.continues, second.continues) == (False, True)
    assert second.messages[-1] == {"role": "assistant", "content": "The moon pulls", "reasoning_content": ""}
    n_tokens = (COMPLETION.prompt_tokens or 0) + len(CUT.tokens())
    assert len(second.known_ids) == n_tokens


@pytest.mark.parametrize(
    ("script", "note"),
    [(Script(""), "it ended without a word"), (Script("", thinking="Hm."), "it thought, and said nothing")],
)
def test_an_answer_without_text_says_so(script: Script, note: str) -> None:
    app, _ = chat_app(script, Script("Yes."))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "are you there?")
        await until_text(pilot, f"◌ {note}: r or /retry asks again")
        await pilot.press("ctrl+up", "r")
        await until(pilot, lambda: sources(pilot) == ["are you there?", "Yes."])
        await until(pilot, lambda: note not in screen_text(app))

    drive(app, steps)


def test_an_answer_is_changed_and_gone_on_with() -> None:
    app, client = chat_app(Script("One."), Script(" And more."))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        await pilot.press("ctrl+up", "e")
        await until_text(pilot, "keeps it as another version")
        chat_screen(pilot).composer.write("Two.")
        await pilot.press("enter")
        await until(pilot, lambda: sources(pilot) == ["hello", "Two."])
        assert len(client.requests) == 1
        await until_text(pilot, "‹ 2/2 ›")
        assert chat_screen(pilot).path.tokens(None) == about_tokens("hello") + about_tokens("Two.")
        chat_screen(pilot).set_focus(views(pilot)[-1])
        await pilot.press("g")
        await until(pilot, lambda: sources(pilot) == ["hello", "Two. And more."])

    drive(app, steps)
    assert client.requests[1].messages[-1]["content"] == "Two."
    assert client.requests[1].known_ids == ()


def test_a_stopped_answer_shows_what_there_was_while_it_goes_on() -> None:
    app, _ = chat_app(ENDS, Script(" again", never_ends=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "hello")
        await until_text(pilot, "Hello!")
        await pilot.press("escape")
        await until_text(pilot, "◼ stopped")
        await type_text(pilot, "/continue")
        chat_screen(pilot).composer.submit()
        await until_text(pilot, "Hello! again")
        await pilot.press("escape")
        await until(pilot, lambda: sources(pilot) == ["hello", "Hello! again"])

    drive(app, steps)


def test_the_size_of_a_draft_is_shown_while_one_types() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        await type_text(pilot, "one two three")
        await until_text(pilot, "3 tokens · 8,189 left")
        composer.attached.add_paste("four five")
        await until(pilot, lambda: "3 tokens" not in str(composer.border_subtitle))
        await pilot.press("ctrl+u")
        composer.attached.take_back()
        await until(pilot, lambda: not composer.border_subtitle)

    drive(app, steps)


def test_what_a_draft_says_of_itself() -> None:
    assert str(DraftSize(1, 100, 1000, True)) == "1 token · 900 left"
    assert str(DraftSize(1200, 1300, 8192, False)) == "≈1,200 tokens · ≈6,892 left"
    assert str(DraftSize(900, 1000, 1000, True)) == "900 tokens · ⚠ 1 too many"
    assert str(DraftSize(900, 1000, 0, False)) == "≈900 tokens"


def test_what_the_model_sees_is_shown_token_by_token() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/sees")
        chat_screen(pilot).composer.submit()
        await until(pilot, lambda: "nothing the model sees" in notice(pilot))
        await ask(pilot, "one two three")
        await type_text(pilot, "/sees")
        chat_screen(pilot).composer.submit()
        await until_text(pilot, "What the model sees: 4 tokens of 8,192")
        await until_text(pilot, "▓      0 one  0 two  1")
        await until_text(pilot, "█      2 three  2 Hello!  3")
        assert len(screen_text(app).splitlines()) <= SMALL[1]
        await pilot.press("i")
        await until_text(pilot, "█      2 three Hello!")
        await pilot.press("escape")
        await until_text(pilot, "Ask anything")

    drive(app, steps)


def test_what_becomes_of_each_token() -> None:
    view = PromptView(300, 100)
    fates = [fate(position, view, 200)[0] for position in range(300)]
    n_outside = 300 + 1 - 200
    assert fates == [CACHED[0]] * 64 + [OUTSIDE[0]] * n_outside + [NEW[0]] * (300 - 64 - n_outside)
    assert {fate(position, view, 400)[0] for position in range(300)} == {CACHED[0], NEW[0]}


def test_no_token_is_lost_between_rows() -> None:
    pieces = tuple("a\n" if n % 5 == 4 else f"w{n} " for n in range(40))
    view = PromptView(40, 7, tuple(range(40)), pieces)
    rows = [row.plain for row in token_rows(view, 0, 30, with_ids=False)]
    assert "".join(row[9:] for row in rows) == "".join(pieces).replace("\n", "⏎")
    assert [int(row[1:8]) for row in rows] == sorted({int(row[1:8]) for row in rows})
    assert all(len(row) <= 30 for row in rows)

"""A chat that no longer fits its context: the user is asked, and what is chosen is done."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from localrun_testing import REPOSITORY
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, send, sources
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.scripted_client import COMPLETION, INFO, Script, ScriptedClient
from localrun_testing.waiting import PATIENCE
from textual.pilot import Pilot

from localrun.base.errors import PromptTooLongError, prompt_too_long
from localrun.base.events import Event
from localrun.base.request import Request
from localrun.fit.shape import shape_of
from localrun.formats.detect import open_model_file
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.screens.chat.too_long import _is_at_longest

BUILTIN = REPOSITORY / "localrun" / "builtin" / "localrun-tiny.gguf"
TOO_LONG = Script(fails=PromptTooLongError("too long", "use --ctx", n_tokens=9000, ctx=8192))
HUGE = Script(fails=PromptTooLongError("too long", "use --ctx", n_tokens=24_310, ctx=8192))


def test_a_full_context_asks_and_then_drops_the_oldest_turns() -> None:
    turns = [Script(completion=replace(COMPLETION, prompt_tokens=2700 * n, ctx=8192)) for n in (1, 2, 3)]
    app, client = chat_app(*turns, TOO_LONG, Script("fits again"), Script("and on"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        for word in ("one", "two", "three"):
            await ask(pilot, word)
        await send(pilot, "four")
        await until_text(pilot, "This chat no longer fits")
        assert "8,102 tokens so far and 898 of this message make 9,000;" in screen_text(app)
        assert "the model no longer sees the 2 oldest turns (5,402 of 9,000 tokens)" in screen_text(app)
        assert "(5,402 of 9,000 tokens); 3,598" in screen_text(app)
        assert "tokens to read, ≈8.5 s" in screen_text(app)  # at 421.6 tokens a second
        assert "--" not in screen_text(app)
        await until(pilot, lambda: not app.screen.deaf)  # type: ignore[attr-defined]
        await pilot.press("down", "enter")
        await until_text(pilot, "fits again")
        assert "▲ the model no longer sees what is above (4 messages)" in screen_text(app)
        await ask(pilot, "five")

    drive(app, steps, LARGE)
    assert [m["content"] for m in client.requests[4].messages] == ["three", "Hello!", "four"]
    assert client.requests[4].known_ids == ()  # those ids began with the dropped turn
    assert client.requests[5].known_ids[-3:] == (0, 1, 2)  # and these begin where the model begins to see


def test_a_text_that_nobody_counted_to_its_end_says_what_is_known_and_a_way_out() -> None:
    app, _ = chat_app(Script(fails=prompt_too_long("19,239 tokens or more", 2048)))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "long")
        await until_text(pilot, "The prompt has 19,239 tokens or more;")
        assert "Ctrl+O loads the model" in screen_text(app)

    drive(app, steps, LARGE)


async def leave_unanswered(pilot: Pilot[Any], missing: str) -> None:
    """Send a message that is too long, and leave its dialog, which has no such choice."""
    await send(pilot, "long")
    await until_text(pilot, "This message does not fit")
    assert missing not in screen_text(pilot.app)
    await until(pilot, lambda: not pilot.app.screen.deaf)  # type: ignore[attr-defined]
    await pilot.press("escape")
    await until_text(pilot, "◌ was too long for the model: Ctrl+R asks again")


def test_stop_and_ask_leaves_the_chat_as_it_was() -> None:
    app, client = chat_app(TOO_LONG)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await leave_unanswered(pilot, missing="Drop the oldest")
        assert sources(pilot) == ["long"]

    drive(app, steps)
    assert len(client.requests) == 1
    assert chat_screen_policy(app) == "stop"


def test_a_message_behind_one_that_was_too_long_is_asked_alone() -> None:
    """Both went to the model, and to shorten the second could not help."""
    app, client = chat_app(HUGE, HUGE, Script("at last"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await leave_unanswered(pilot, missing="Ask this message alone")
        await send(pilot, "short")
        await until_text(pilot, "These messages do not fit")
        await until(pilot, lambda: not app.screen.deaf)  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until_text(pilot, "at last")
        assert sources(pilot) == ["short", "at last"]

    drive(app, steps)
    assert [message["content"] for message in client.requests[-1].messages] == ["short"]


def test_a_message_that_never_fits_is_shortened_and_not_paid_for_with_the_history() -> None:
    """A key that is pressed while the question appears is no answer to it."""
    rolls = replace(INFO, can_roll=True)
    first = Script(completion=replace(COMPLETION, prompt_tokens=50, ctx=8192))
    app, client = chat_app(client=ScriptedClient([first, HUGE, Script("Short enough.")], info=rolls))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hi")
        await send(pilot, "very long")
        await until_text(pilot, "This message does not fit")
        await pilot.press("enter", "escape")
        assert app.screen.query("#question")
        text = screen_text(app)
        assert "It has 24,258 tokens; the context holds 8,192, the answer included." in text
        assert "Drop the oldest" not in text
        assert "Roll on" in text
        await until(pilot, lambda: not app.screen.deaf)  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until_text(pilot, "Editing: Enter sends it")
        assert chat_screen(pilot).query_one(Editor).text == "very long"
        await pilot.press("ctrl+u", "h", "m", "enter")
        await until_text(pilot, "Short enough.")

    drive(app, steps, LARGE)
    assert [m["content"] for m in client.requests[2].messages] == ["hi", "Hello!", "hm"]


def test_where_dropping_was_chosen_and_one_turn_was_too_few_another_goes(tmp_path: Path) -> None:
    app, client = chat_app(Script(), Script(), TOO_LONG, Script("fits"), folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "one")
        await ask(pilot, "two")
        app.session.chat.set(policy="drop")  # type: ignore[union-attr]
        await send(pilot, "three")
        await until_text(pilot, "fits")

    drive(app, steps)
    assert [m["content"] for m in client.requests[3].messages] == ["two", "Hello!", "three"]


def chat_screen_policy(app: Any) -> str:
    return str(app.session.chat.policy)


def test_a_chat_left_behind_that_does_not_fit_says_so_without_holding_up_the_new_one() -> None:
    class Gated(ScriptedClient):
        def events(self, request: Request) -> Iterator[Event]:
            assert may_fail.wait(PATIENCE)
            yield from super().events(request)

    may_fail = threading.Event()
    app, _ = chat_app(client=Gated([TOO_LONG, Script("here")]))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "a long one")
        await until(pilot, lambda: chat_screen(pilot).session.answering)
        await pilot.press("ctrl+n")
        may_fail.set()
        await until_text(pilot, "“a long one” was not answered")
        assert "--ctx" not in screen_text(app)
        await ask(pilot, "a new one")
        assert "here" in screen_text(app)

    drive(app, steps, LARGE)


def test_a_larger_context_is_offered_only_where_the_model_has_one() -> None:
    longest = shape_of(open_model_file(BUILTIN)).config.max_context
    small, full = (replace(INFO, path=str(BUILTIN), ctx=ctx) for ctx in (longest - 1, longest))
    assert [_is_at_longest(info) for info in (small, full, INFO, None)] == [False, True, False, False]

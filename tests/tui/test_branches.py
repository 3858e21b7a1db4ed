"""Edits and second answers are branches one can walk; settings and files go along; the context may fill up."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, send, type_text, views
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_done, until_text
from localrun_testing.scripted_client import COMPLETION, INFO, Script, ScriptedClient
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from localrun.base.errors import PromptTooLongError
from localrun_tui.screens.chat.composer import Composer, Editor

TOO_LONG = Script(fails=PromptTooLongError("too long", "use --ctx", n_tokens=9000))
HUGE = Script(fails=PromptTooLongError("too long", "use --ctx", n_tokens=24_310))


def sources(pilot: Pilot[Any]) -> list[str]:
    return [view.source for view in views(pilot)]


def test_a_second_answer_is_a_branch_that_can_be_walked() -> None:
    app, client = chat_app(Script("heads"), Script("tails"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "flip a coin")
        await pilot.press("ctrl+r")
        await until_text(pilot, "tails")
        await until_text(pilot, "‹ 2/2 ›")
        assert sources(pilot) == ["flip a coin", "tails"]
        await pilot.press("up", "left")
        await until(pilot, lambda: sources(pilot) == ["flip a coin", "heads"])
        assert "‹ 1/2 ›" in screen_text(app)
        await pilot.press("up", "left")  # there is none before the first
        await until_done(pilot)
        assert sources(pilot) == ["flip a coin", "heads"]

    drive(app, steps)
    assert [len(request.messages) for request in client.requests] == [1, 1]


def test_whoever_walks_stays_on_the_message() -> None:
    app, _ = chat_app(Script("one"), Script("two"), Script("three"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "count")
        for text in ("two", "three"):
            await pilot.press("ctrl+r")
            await until_text(pilot, text)
            await until(pilot, lambda: chat_screen(pilot).path.live is None)
        await pilot.press("up")
        for key, text in (("left", "two"), ("left", "one"), ("right", "two")):
            await pilot.press(key)
            await until(pilot, lambda text=text: sources(pilot)[-1:] == [text])  # type: ignore[misc]
            await until(pilot, lambda: [view.has_focus for view in views(pilot)][-1:] == [True])

    drive(app, steps)


def test_an_edit_is_a_branch_and_what_was_typed_before_comes_back() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "my frist try")
        await type_text(pilot, "half a thought")
        await pilot.press("up", "up", "e")
        assert "Editing" in screen_text(app)
        assert chat_screen(pilot).query_one(Editor).text == "my frist try"
        await pilot.press("escape")
        assert "Editing" not in screen_text(app)
        assert chat_screen(pilot).query_one(Editor).text == "half a thought"
        await pilot.press("up", "up", "e", "!", "enter")
        await until(pilot, lambda: sources(pilot) == ["my frist try!", "Hello!"])
        assert "‹ 2/2 ›" in screen_text(app)
        assert chat_screen(pilot).query_one(Editor).text == "half a thought"

    drive(app, steps)
    assert [request.messages[0]["content"] for request in client.requests] == ["my frist try", "my frist try!"]


def test_files_go_along_as_chips(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("ignore ``` fences\n")
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.screen.query("#answer"))
        app.screen.query_one("#answer", Input).value = str(notes)
        await pilot.press("enter")
        await until_text(pilot, "▤ notes.md")
        await ask(pilot, "sum up")
        assert "sum up" in screen_text(app).splitlines()[0]  # the title is what was typed
        assert "▤ notes.md" in screen_text(app)
        assert "ignore" not in screen_text(app)
        assert chat_screen(pilot).query_one(Composer).attachments == []

    drive(app, steps)
    assert client.requests[0].messages[0]["content"] == "[file: notes.md]\n````\nignore ``` fences\n\n````\n\nsum up"


def test_a_file_that_cannot_be_attached_is_refused_and_another_one_may_be_named(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("words")
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.screen.query("#answer"))
        app.screen.query_one("#answer", Input).value = str(picture)
        await pilot.press("enter")
        await until_text(pilot, "cat.png is not UTF-8 text")
        app.screen.query_one("#answer", Input).value = str(tmp_path / "nothing")
        await until(pilot, lambda: "is not UTF-8 text" not in screen_text(app))
        await pilot.press("enter")
        await until_text(pilot, "nothing is not a file")
        app.screen.query_one("#answer", Input).value = str(notes)
        await pilot.press("enter")
        await until_text(pilot, "▤ notes.txt")

    drive(app, steps)


def test_a_long_paste_becomes_a_chip() -> None:
    from textual.events import Paste

    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        chat_screen(pilot).query_one(Editor).post_message(Paste("words \x1b[31m" * 1000))
        await until_text(pilot, "▤ pasted text 1")
        await ask(pilot, "what is it?")

    drive(app, steps)
    assert "\x1b" not in client.requests[0].messages[0]["content"]


def test_a_system_prompt_that_was_typed_is_not_lost_by_escape() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen.query("#system"))
        await pilot.press("escape")  # nothing was changed
        await until_text(pilot, "Ask anything. Enter sends.")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen.query("#system"))
        await pilot.press(*"Be brief", "escape")
        await until_text(pilot, "Save the changes to this chat?")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen.query("#system"))
        assert app.screen.query_one("#system", TextArea).text == "Be brief"
        await pilot.press("escape")
        await until_text(pilot, "Save the changes to this chat?")
        await pilot.press("enter")
        await until_text(pilot, "Ask anything. Enter sends.")
        await ask(pilot, "ahoy")

    drive(app, steps)
    assert client.requests[0].messages[0]["content"] == "Be brief"


def test_settings_of_the_chat_reach_the_engine() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen.query("#system"))
        app.screen.query_one("#system", TextArea).text = "Answer like a pirate."
        await pilot.press("tab", "down", "enter", "tab", "down", "down", "enter", "tab", "down", "down", "enter")
        await pilot.press("ctrl+s")
        await ask(pilot, "ahoy")

    drive(app, steps)
    (request,) = client.requests
    assert request.messages[0] == {"role": "system", "content": "Answer like a pirate."}
    assert request.sampling.temperature == 0.0  # exact
    assert request.overflow == "roll"
    assert request.think == "off"


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


def test_stop_and_ask_leaves_the_chat_as_it_was() -> None:
    app, client = chat_app(TOO_LONG)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "long")
        await until_text(pilot, "This message does not fit")
        assert "Drop the oldest" not in screen_text(app)
        await until(pilot, lambda: not app.screen.deaf)  # type: ignore[attr-defined]
        await pilot.press("escape")
        await until_text(pilot, "◌ not answered")
        assert sources(pilot) == ["long"]

    drive(app, steps)
    assert len(client.requests) == 1
    assert chat_screen_policy(app) == "stop"


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


def test_code_and_messages_are_copied_and_links_open_on_confirmation_only(monkeypatch: Any) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    app, _ = chat_app(
        Script("```python\nx = 1\n```\n\nor\n\n    y = 2\n\n[docs](https://a.example/x) [bad](mailto:a@b)")
    )

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "code")
        assert "docs (https://a.example/x)" in screen_text(app)
        await pilot.press("up", "2")
        assert app.clipboard == "y = 2"
        await pilot.press("c")
        assert app.clipboard.startswith("```python\nx = 1")
        await pilot.press("o", "enter")
        await until_text(pilot, "Open this link in the browser?")
        await pilot.press("enter")  # the harmless answer has the focus
        await until(pilot, lambda: app.screen is chat_screen(pilot))
        await until_done(pilot)
        assert opened == []
        await pilot.press("o", "down", "enter")
        await until(pilot, lambda: "this is no web address" in notice(pilot))
        await pilot.press("o", "enter")
        await until_text(pilot, "Open this link in the browser?")
        await pilot.press("y")
        await until(pilot, lambda: opened == ["https://a.example/x"])

    drive(app, steps)


def test_only_the_latest_messages_of_a_long_chat_are_widgets() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        session = chat_screen(pilot).session
        chat = await session.new_chat()
        for n in range(150):
            chat.add_answer(chat.add_user(f"question {n}").id, f"answer {n}")
        await session.open_chat(chat.id)
        await until_text(pilot, "answer 149")
        assert len(views(pilot)) < 40
        await until_text(pilot, "question 149")
        transcript = chat_screen(pilot).transcript
        transcript.scroll_home(animate=False)
        await until(pilot, lambda: len(views(pilot)) > 40)
        assert "question 137" in [view.source for view in views(pilot)]
        await until(pilot, lambda: transcript.scroll_y > 0)  # what was on the screen has not moved

    drive(app, steps)

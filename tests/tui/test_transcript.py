"""What was said: copied from, links opened from, and only its end made of widgets."""

from typing import Any

from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, send, sources, text_of, views
from localrun_testing.pilots import drive, screen_text, until, until_done, until_text
from localrun_testing.scripted_client import Script
from textual.pilot import Pilot

from localrun_tui.screens.chat.message_view import MessageView


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
        await pilot.press("ctrl+up", "2")
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


def test_the_mouse_selects_words_and_what_is_copied_is_said() -> None:
    app, _ = chat_app(Script("read notes.txt twice"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "what?")
        view = views(pilot)[-1]
        row, column = next(
            (y, line.plain.index("notes")) for y, line in enumerate(view.lines(76)) if "notes" in line.plain
        )
        await pilot.click(view, offset=(column + 2, row), times=2)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.clipboard == "notes.txt")
        await until_text(pilot, "copied · notes.txt")
        await pilot.click(view, offset=(column + 2, row), times=3)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "read notes.txt twice" in app.clipboard)
        assert "what?" not in app.clipboard
        await pilot.press("ctrl+c")  # nothing is selected any more
        await until_text(pilot, "Ctrl+C again quits")

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
        assert "question 137" in sources(pilot)
        await until(pilot, lambda: transcript.scroll_y > 0)  # what was on the screen has not moved

    drive(app, steps)


def test_a_key_of_a_message_that_has_just_been_removed_leads_nowhere() -> None:
    """Its own message may still be on the way when the chat is shown anew."""
    app, _ = chat_app(Script("42"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "6 * 7?")
        question, answer = views(pilot)
        await question.remove()
        answer.focus()
        await until(pilot, lambda: answer.has_focus)
        chat_screen(pilot).transcript.post_message(MessageView.Go(question, 1))
        await pilot.pause()
        assert answer.has_focus

    drive(app, steps)


def test_code_and_tables_are_shown_whole_by_a_key() -> None:
    app, _ = chat_app(Script(f"```\n{'0123456789' * 20}\n```"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        await pilot.press("ctrl+up")
        (view,) = [view for view in views(pilot) if view.message and view.message.role == "assistant"]
        assert "↩" in text_of(view)
        await pilot.press("w")
        await until_text(pilot, "›")
        assert "↩" not in screen_text(app)
        await pilot.press("shift+right")
        await until_text(pilot, "‹")
        await pilot.press("w")
        await until_text(pilot, "↩")

    drive(app, steps)


def test_new_text_is_told_of_while_one_reads_further_up() -> None:
    long = "\n\n".join(f"paragraph {n}" for n in range(60))
    app, _ = chat_app(Script(long), Script("\n\n".join(["more"] * 80), delay=0.002, never_ends=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        await send(pilot, "go on")
        await until_text(pilot, "more")
        assert "↓ new text" not in screen_text(app)
        await pilot.press("pageup", "pageup")
        await until_text(pilot, "↓ new text")
        await pilot.press("ctrl+end")
        await until(pilot, lambda: chat_screen(pilot).transcript.is_at_end)
        await until(pilot, lambda: "↓ new text" not in screen_text(app))
        await pilot.press("escape")

    drive(app, steps)

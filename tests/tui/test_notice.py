"""The notice above the composer: what is wrapped stands below its text, not below its mark."""

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready
from localrun_testing.pilots import drive, screen_text, until, until_text
from textual.pilot import Pilot

from localrun.base.errors import LocalrunError
from localrun_tui.screens.help_screen import HelpScreen
from localrun_tui.widgets.toast import toast


@pytest.mark.parametrize("n_words", [3, 40])
def test_wrapped_lines_keep_their_indent(n_words: int) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[object]) -> None:
        await ready(pilot)
        words = " ".join(f"word{n:02}" for n in range(n_words))
        chat_screen(pilot).pane.notice.say_error(LocalrunError(f"begin {words} end", "try this"))
        await until_text(pilot, " end")
        await until_text(pilot, "try this")
        lines = [line for line in screen_text(app).splitlines() if line.startswith(" ▌")]
        assert lines[0].startswith(" ▌ ✕ begin")
        assert all(line.startswith(" ▌   ") and line[5] != " " for line in lines[1:])
        assert (len(lines) > 2) == (n_words > 3)

    drive(app, steps)


def test_a_toast_does_not_cover_the_next_screen() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[object]) -> None:
        await ready(pilot)
        toast(app.screen, "Nothing was said in this chat yet")
        await until_text(pilot, "Nothing was said")
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await until(pilot, lambda: "Nothing was said" not in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))
        assert "Nothing was said" not in screen_text(app)

    drive(app, steps)


def test_a_toast_covers_the_bar_and_none_of_the_chat() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[object]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        await until_text(pilot, "You")
        before = screen_text(app).splitlines()
        toast(app.screen, "Exported [1/2]", "written to /home/somebody/notes/[red]chat.md", "warning")
        await until_text(pilot, "Exported [1/2] · written to /home/somebody/notes/[red]chat.md")
        assert screen_text(app).splitlines()[1:] == before[1:]

    drive(app, steps)


def test_an_error_of_one_chat_is_not_shown_in_the_next() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[object]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        chat_screen(pilot).pane.notice.say_error(LocalrunError("this chat is full"))
        await pilot.press("ctrl+n")
        await until(pilot, lambda: not notice(pilot))

    drive(app, steps)

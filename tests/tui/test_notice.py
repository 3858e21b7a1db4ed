"""The notice above the composer: what is wrapped stands below its text, not below its mark."""

import pytest
from localrun_testing.chat_app import chat_app, chat_screen, ready
from localrun_testing.pilots import drive, screen_text, until_text
from textual.pilot import Pilot

from localrun.base.errors import LocalrunError


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

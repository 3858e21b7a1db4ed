"""A file that is too long for a message: what goes along in its place is chosen in a dialog."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App

from localrun.base.content import FilePart
from localrun_tui.widgets.toast import toast

if TYPE_CHECKING:
    from localrun.chat.long_text.part_of_text import TextRange
    from localrun_tui.screens.chat.composer import Composer
    from localrun_tui.screens.dialogs.read_screen import ReadScreen
    from localrun_tui.state.session import Session


async def attach_long(
    app: App[Any], session: "Session", composer: "Composer", path: Path, question: str = "", part: str = ""
) -> None:
    """Attach a part of a file, or notes on all of it or of `part`, for the question or what is typed."""
    import asyncio

    from localrun.chat.attachments import read_text
    from localrun.chat.left_out import Attached

    text = await asyncio.to_thread(read_text, path)
    typed = composer.editor.text.strip()
    screen = _read_screen(session, path.name, text, question or typed, part)
    chosen = await app.push_screen_wait(screen)
    if chosen is not None:
        composer.attached.take(Attached([chosen], screen.left_out))
    if screen.question and composer.editor.text.strip() in ("", typed):
        composer.write(screen.question)


async def is_long(session: "Session", path: Path, part: "TextRange") -> bool:
    """Whether a part of a file is longer than what the model sees; its kinds of lines never are."""
    import asyncio

    from localrun.chat.attachments import read_text
    from localrun_tui.state.long_text import LongText

    if part.is_condensed:
        return False
    text = await asyncio.to_thread(read_text, path)
    return await asyncio.to_thread(LongText(session, path.name, text).is_long, part.name)


async def choose_part(app: App[Any], session: "Session", name: str, text: str, question: str) -> FilePart | None:
    """Let the user choose what goes along of a text that is too long; None where the user leaves it."""
    screen = _read_screen(session, name, text, question)
    chosen = await app.push_screen_wait(screen)
    if screen.left_out:
        toast(app, screen.left_out, severity="warning")
    return chosen


def _read_screen(session: "Session", name: str, text: str, question: str, part: str = "") -> "ReadScreen":
    from localrun_tui.screens.dialogs.read_screen import ReadScreen
    from localrun_tui.state.long_text import LongText

    return ReadScreen(LongText(session, name, text), question, part)

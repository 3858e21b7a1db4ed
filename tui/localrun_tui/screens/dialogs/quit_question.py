"""The question before the app ends: what ends with it, and what is lost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from localrun_tui.screens.dialogs.confirm import ConfirmScreen

if TYPE_CHECKING:
    from localrun.chat.journal import ChatSummary
    from localrun_tui.screens.downloads.download import Download
    from localrun_tui.state.app_server import AppServer


def quit_question(
    downloads: "Sequence[Download]", server: "AppServer", is_draft_lost: bool, unwritten: "Sequence[ChatSummary]"
) -> ConfirmScreen | None:
    """The question whether to quit, with the downloads under way and the chats that are not on disk; None where
    nothing ends or is lost."""
    words, facts = [], []
    if is_draft_lost:
        words.append("What you were writing is lost then: it cannot be written to disk.")
    if unwritten:
        words.append("What cannot be written to disk is lost then; /save FILE writes the open chat to another folder.")
        facts += [("not on disk", f"“{one.title}”") for one in unwritten]
    if downloads:
        words.append("Downloads end with the app; what has arrived is kept, and goes on from there.")
        facts += [(f"{one.share:.0%} of", f"{one.short_name} {one.precision}") for one in downloads]
    if server.url:
        words.append("Other programs are not answered any more.")
        n_requests = len(server.requests)
        facts.append(("served at", f"{server.url}, {n_requests} request{'' if n_requests == 1 else 's'} under way"))
        facts += [(program, "uses the engine; it loads the model itself then") for program in server.programs]
    if not words:
        return None
    is_lost = is_draft_lost or bool(unwritten)
    return ConfirmScreen(" ".join(("Quit?", *words)), facts, "Quit", "Stay", danger=is_lost)

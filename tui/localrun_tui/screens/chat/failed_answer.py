"""Words about an answer that failed, where they are not part of the chat."""

from typing import TYPE_CHECKING

from localrun.base.errors import LocalrunError, PromptTooLongError
from localrun_tui.state.turn import Turn
from localrun_tui.widgets.toast import toast

if TYPE_CHECKING:
    from localrun_tui.screens.chat.composer import Composer
    from localrun_tui.screens.chat.notice import Notice
    from localrun_tui.state.session import Session


async def tell_of_failure(
    turn: Turn, error: LocalrunError, session: "Session", composer: "Composer", notice: "Notice"
) -> None:
    """Say it, in the chat that is shown or beside it. A prompt that was too long is mended or edited."""
    if turn.chat is not session.chat:
        title = f"“{turn.chat.title}”" if turn.chat.title else "The other chat"
        toast(composer, f"{title} was not answered", f"{error.message}. Open it to ask again.", "warning")
        return
    session.waiting.hold()
    if isinstance(error, PromptTooLongError):
        from localrun_tui.screens.chat.too_long import mend_too_long

        if await mend_too_long(composer.app, session, turn, error):
            composer.edit(turn.question, turn.chat.tree[turn.question].content)
    elif turn.kept is None:
        notice.say_error(error)

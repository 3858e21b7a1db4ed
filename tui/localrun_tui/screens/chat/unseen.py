"""Images that the model does not see: a message with them is taken back into the editor before it is sent."""

from localrun.base.errors import LocalrunError
from localrun.base.events import ModelInfo
from localrun.chat.sight import require_sight, unseen_words
from localrun_tui.screens.chat.composer import Composer
from localrun_tui.screens.chat.notice import Notice
from localrun_tui.state.session import Session


def takes_back(submitted: Composer.Submitted, info: ModelInfo | None, composer: Composer, notice: Notice) -> bool:
    """Whether the message is back in the editor, with the reason in a notice."""
    try:
        require_sight(info, submitted.content)
    except LocalrunError as error:
        notice.say_error(error)
        if submitted.edited is None:
            composer.continue_chat(submitted.content)
        else:
            composer.edit(submitted.edited, submitted.content)
        return True
    return False


async def tell_unseen(session: Session, notice: Notice) -> None:
    """Say which images of the chat a model that was just loaded does not see."""
    chat, info = session.chat, session.info
    if chat is None or info is None or chat.tree.head is None:
        return
    if unseen := await session.disk.run(unseen_words, chat, chat.tree.head, info):
        notice.say(f"⚠ {unseen}")

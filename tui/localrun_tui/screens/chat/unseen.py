"""A message with images that the model does not see: taken back into the editor before it is sent."""

from localrun.base.errors import LocalrunError
from localrun.base.events import ModelInfo
from localrun.chat.sight import require_sight
from localrun_tui.screens.chat.composer import Composer
from localrun_tui.screens.chat.notice import Notice


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

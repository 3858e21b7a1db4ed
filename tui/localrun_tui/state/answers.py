"""Build the requests of a chat. On the disk's thread."""

from typing import TYPE_CHECKING

from localrun.base.request import Request
from localrun.base.settings import read_settings
from localrun.chat.chat_settings import settings_of, think_of
from localrun.chat.presets import sampling_of
from localrun.chat.turn import TurnOptions, begin_turn, continue_turn

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun.chat.tree import Message


def turn_options(chat: "Chat") -> TurnOptions:
    """Options of an answer: those of the chat, else config.toml, read each time, so that a change counts at once."""
    settings = settings_of(chat, read_settings())
    return TurnOptions(
        sampling=sampling_of(settings),
        max_tokens=settings.max_tokens,
        think=think_of(chat),
        stop_on_loop=settings.stop_on_loop is not False,
    )


def build_request(chat: "Chat", message_id: str, ctx: int, sees: bool = True) -> Request:
    """The request for an answer to `message_id`. Dropped turns are shown by a line in the transcript."""
    return begin_turn(chat, message_id, turn_options(chat), ctx, sees)[0]


def continue_request(chat: "Chat", cut: "Message", sees: bool = True) -> Request:
    """The request to continue an answer that was cut."""
    return continue_turn(chat, cut, turn_options(chat), sees)

"""The current chat for commands: one in which something was said, and its last question."""

from typing import TYPE_CHECKING

from localrun.base.errors import UsageError

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun_tui.state.session import Session


def nonempty_chat(session: "Session") -> "Chat":
    """The current chat. UsageError while it is empty."""
    if session.chat is None or not len(session.chat.tree):
        raise UsageError("this chat has no messages yet", "type a message")
    return session.chat


def last_question(session: "Session") -> str:
    """The id of the user's last message on the branch that is shown. UsageError where there is none."""
    chat = nonempty_chat(session)
    asked = [message.id for message in chat.tree.path(chat.tree.head) if message.role == "user"]
    if not asked:
        raise UsageError("there is no message yet", "type one")
    return asked[-1]

"""One chat, by what a user calls it."""

from localrun.base.errors import NotFoundError, UsageError
from localrun.chat.journal import ChatStore, ChatSummary


def find_chat(store: ChatStore, wanted: str) -> ChatSummary:
    """By number in the list, from 1 on, by id, or by the beginning of an id or the end of it, if only one has it."""
    chats = store.summaries()
    if wanted == "last" and chats:
        return chats[0]
    if wanted.isdecimal() and 1 <= int(wanted[:9]) <= len(chats):
        return chats[int(wanted[:9]) - 1]
    found = [chat for chat in chats if chat.id == wanted] or [
        chat for chat in chats if len(wanted) >= 4 and (chat.id.startswith(wanted) or chat.id.endswith(wanted))
    ]
    if not found:
        raise NotFoundError(f"there is no chat {wanted}", "`localrun history list` shows them")
    if len(found) > 1:
        raise UsageError(f"{len(found)} chats are called {wanted}", "give more of the id")
    return found[0]

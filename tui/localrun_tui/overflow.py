"""How much of the context a chat leaves free, and what of it is hidden from the model."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localrun.chat.journal import Chat

_MOST_RESERVED = 512  # tokens


def reserve_of(ctx: int) -> int:
    """Tokens that are left for an answer, at least."""
    return min(_MOST_RESERVED, ctx // 8)


def horizon_of(chat: "Chat", ctx: int) -> int | None:
    """Number of the first message on the selected branch that the model sees all of; None when it sees everything."""
    from localrun.chat.overflow import horizon_of as first_seen

    first = first_seen(chat, ctx) if ctx else chat.horizon
    return next((n for n, message in enumerate(chat.tree.path(chat.tree.head)) if message.id == first), None)

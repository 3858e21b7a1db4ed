"""When the chat outgrows the context: what is hidden from the model, and the user's choice."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localrun.chat.journal import Chat, Policy

    from .app import LocalrunApp
    from .session import Session
    from .turn import Turn

_MOST_RESERVED = 512  # tokens


def reserve_of(ctx: int) -> int:
    """Tokens that are left for an answer, at least."""
    return min(_MOST_RESERVED, ctx // 8)


def horizon_of(chat: "Chat", ctx: int) -> int | None:
    """Number of the first message on the selected branch that the model sees all of; None when it sees everything."""
    from localrun.chat.overflow import horizon_of as first_seen

    first = first_seen(chat, ctx) if ctx else chat.horizon
    return next((n for n, message in enumerate(chat.tree.path(chat.tree.head)) if message.id == first), None)


async def ask_overflow(app: "LocalrunApp", session: "Session", turn: "Turn", reason: str) -> None:
    """Let the user choose what happens with the full chat, and answer again if anything does."""
    from localrun.chat.overflow import plan_for

    from .ask import AskOne
    from .chat_settings import POLICIES

    chat, ctx = turn.chat, session.info.ctx if session.info else 0
    policies: tuple[Policy, ...] = ("drop", "roll", "stop")
    rows = []
    for key in policies:
        title, explanation = POLICIES[key]
        plan = await session.on_disk(plan_for, chat, turn.parent_id, ctx, key, reserve_of(ctx))
        rows.append((key, title, str(plan) or explanation))
    text = f"{reason}\nWhat should happen with this chat?"
    choice = await app.push_screen_wait(AskOne("The context is full", rows, text))
    if choice in ("drop", "roll"):
        await session.on_disk(lambda: chat.set(policy=choice))
        await session.answer(chat, turn.parent_id)

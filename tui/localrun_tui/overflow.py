"""When the chat outgrows the context: what is hidden from the model, and the user's choice."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun.chat.overflow import OverflowPlan

    from .app import LocalrunApp
    from .session import Session
    from .turn import Turn

_CHARACTERS_A_TOKEN = 2.5  # of a message that was not counted yet: rather too few
_MOST_RESERVED = 512  # tokens


def plan_for(chat: "Chat", message_id: str | None, ctx: int, policy: str | None = None) -> "OverflowPlan":
    """What the model can see of the branch that ends at `message_id`, under the chat's policy or another one."""
    from localrun.chat.overflow import plan_overflow, turn_sizes

    path = chat.tree.path(message_id)
    sizes = turn_sizes(path)
    if path and path[-1].role == "user":
        sizes[-1] = sizes[-1] or int(len(path[-1].text) / _CHARACTERS_A_TOKEN) + 16
    wanted = next((p for p in ("drop", "roll") if p == (policy or chat.policy)), "stop")
    return plan_overflow(path, sizes, ctx, wanted, reserve=reserve_of(ctx))  # type: ignore[arg-type]


def reserve_of(ctx: int) -> int:
    """Tokens that are left for an answer, at least."""
    return min(_MOST_RESERVED, ctx // 8)


def horizon_of(chat: "Chat", ctx: int) -> int | None:
    """Number of the first message on the selected branch that the model still sees; None when it sees all."""
    horizon = chat.horizon
    if chat.policy == "roll" and ctx:
        horizon = plan_for(chat, chat.tree.head, ctx).horizon
    return next((n for n, message in enumerate(chat.tree.path(chat.tree.head)) if message.id == horizon), None)


async def ask_overflow(app: "LocalrunApp", session: "Session", turn: "Turn", reason: str) -> None:
    """Let the user choose what happens with the full chat, and answer again if anything does."""
    from .ask import AskOne
    from .chat_settings import POLICIES

    chat, ctx = turn.chat, session.info.ctx if session.info else 0
    rows = []
    for key in ("drop", "roll", "stop"):
        title, explanation = POLICIES[key]
        plan = await session.on_disk(plan_for, chat, turn.parent_id, ctx, key)
        rows.append((key, title, str(plan) or explanation))
    text = f"{reason}\nWhat should happen with this chat?"
    choice = await app.push_screen_wait(AskOne("The context is full", rows, text))
    if choice in ("drop", "roll"):
        await session.on_disk(lambda: chat.set(policy=choice))
        await session.answer(chat, turn.parent_id)

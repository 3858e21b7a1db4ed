"""Continue a chat with its own model."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from localrun.base.errors import LocalrunError
from localrun.chat.chat_settings import held_with
from localrun.client.choice import choice_of, is_held_by
from localrun_tui.state.messages import ModelGone

if TYPE_CHECKING:
    from localrun.client.choice import ModelChoice
    from localrun_tui.state.session import Session

_LOOK = 0.1  # seconds between checks of an answer that has to end first


async def load_when_idle(session: "Session", choice: "ModelChoice") -> None:
    """Load `choice` once no answer is under way."""
    while session.answering or session.asking:
        await asyncio.sleep(_LOOK)
    await session.load(choice)


async def continue_chat(session: "Session") -> None:
    """Load the model that the current chat was held with, once the answer under way is over. One that is given up or
    cannot be loaded leaves the present one."""
    chat, present = session.chat, session.present
    if chat is None or not len(chat.tree):
        return
    held = held_with(chat)
    while session.answering and session.chat is chat:
        await asyncio.sleep(_LOOK)
    info = session.info
    if session.chat is not chat or not held.model or present is None or (info and is_held_by(held, present, info)):
        return
    choice = await session.disk.run(choice_of, held, present)
    if choice is None:
        session.post(ModelGone(held.model, present.stored.name))
        return
    await load_instead(session, choice, for_chat=True)


async def open_last(
    session: "Session", choose: "Callable[[], ModelChoice | None]", flags: Mapping[str, Any]
) -> "ModelChoice | None":
    """Open the chat that was used last. Gives its model, with the context and cache of `flags`; the one to `choose`,
    which reads the disk, only where that was named, or the chat's is not known or gone."""
    last = await session.disk.run(lambda: session.disk.store().summaries()[:1])
    if last:
        await session.open_chat(last[0].id)
    held = held_with(session.chat) if last and session.chat is not None else None
    if held is None or not held.model or "model" in flags:
        return await session.disk.run(choose)
    own = await session.disk.run(choice_of, held)
    first = None if own else await session.disk.run(choose)
    if first is not None:
        own = await session.disk.run(choice_of, held, first)
        if own is None:
            session.post(ModelGone(held.model, first.stored.name))
            return first
    return replace(own, **flags) if own else None


async def load_instead(session: "Session", choice: "ModelChoice", for_chat: bool = False) -> bool:
    """Load `choice`; where that is given up or fails, the present model comes back. Gives whether it is there now."""
    present = session.present
    try:
        loaded = await session.load(choice, present, for_chat)
    except LocalrunError:
        if present is not None:
            await session.load(present)
            session.model.refused = choice  # which that load forgot
        raise
    if not loaded and not session.model.loading and present is not None:  # else another load has taken its place
        await session.load(present)
    return loaded

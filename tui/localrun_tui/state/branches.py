"""Versions of messages: make, show or drop one."""

from typing import TYPE_CHECKING

from localrun.base.content import Content
from localrun_tui.state.messages import ChatChanged

if TYPE_CHECKING:
    from localrun_tui.state.session import Session


class Branches:
    """Branches of the current chat. A running answer is ended first; a missing message changes nothing."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def edit(self, message_id: str, content: str | Content) -> None:
        """Say it in other words, as a branch beside the first, and answer that, unless it is an answer itself."""
        session, chat = self._session, self._session.chat
        if chat is not None:
            await session.stop()
            message = await session.disk.run(chat.edit, message_id, content)
            if message.role == "assistant":
                session.post(ChatChanged(at=message.id))
            else:
                await session.answer(chat, message.id)

    async def walk(self, message_id: str, step: int) -> None:
        """Go to the version of a message that is `step` further, if there is one."""
        chat = self._session.chat
        if chat is None or message_id not in chat.tree:
            return
        siblings = chat.tree.siblings(message_id)
        index = siblings.index(message_id) + step
        if 0 <= index < len(siblings):
            await self.show(siblings[index])

    async def show(self, message_id: str) -> None:
        """Show the branch through this message."""
        session, chat = self._session, self._session.chat
        if chat is not None and message_id in chat.tree:
            await session.stop()
            await session.disk.run(chat.select, message_id)
            session.post(ChatChanged(at=message_id))

    async def take_back(self, message_id: str) -> None:
        """Let the chat end before this message; it stays in the tree."""
        session, chat = self._session, self._session.chat
        if chat is not None and message_id in chat.tree:
            await session.stop()
            session.unanswered = None
            await session.disk.run(chat.rewind, chat.tree[message_id].parent)
            session.post(ChatChanged())

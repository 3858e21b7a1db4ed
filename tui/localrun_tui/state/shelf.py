"""The chats on disk, with the actions on a whole chat."""

from collections.abc import Callable
from typing import Any

from localrun_tui.state.messages import ChatChanged
from localrun_tui.state.store_thread import StoreThread


class Shelf:
    """Every method raises LocalrunError where the disk refuses. `post` gets the changes that are visible."""

    def __init__(self, disk: StoreThread, post: Callable[[ChatChanged], Any]) -> None:
        self._disk = disk
        self._post = post
        self._deleted: list[str] = []  # the last one last

    async def change(self, chat_id: str, **settings: Any) -> None:
        """Set something of a chat: its title, its folder, whether it is pinned."""
        await self._disk.run(lambda: self._disk.store().change(chat_id, **settings))
        self._post(ChatChanged())

    async def duplicate(self, chat_id: str) -> str:
        """Return the id of the copy."""
        copy = await self._disk.run(lambda: self._disk.store().duplicate(chat_id))
        return copy.id

    async def delete(self, chat_id: str) -> None:
        """Remove a chat; `undelete` brings it back."""
        await self._disk.run(lambda: self._disk.store().delete(chat_id))
        self._deleted.append(chat_id)

    async def undelete(self) -> str | None:
        """Bring back the chat that was deleted last; gives its id, None where none was."""
        if not self._deleted:
            return None
        chat_id = self._deleted.pop()
        await self._disk.run(lambda: self._disk.store().restore(chat_id))
        return chat_id

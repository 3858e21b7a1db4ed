"""Messages sent during an answer, which wait for its end."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from localrun.base.content import Content
from localrun_tui.state.messages import ChatChanged
from localrun_tui.state.store_thread import StoreThread

if TYPE_CHECKING:
    from localrun.chat.journal import Chat


class WaitingMessages:
    """Messages that wait, stored in the file of `chat` until they are sent, in case of a crash.

    `post` gets every change.
    """

    def __init__(self, disk: StoreThread, post: Callable[[ChatChanged], Any]) -> None:
        self.chat: Chat | None = None  # None until the first one is on disk: then they are in memory only
        self.contents: list[Content] = []
        self.held = False  # they are not sent before the user says so
        # number of the one that is changed, None once it is gone; whether all were held
        self._reworded: tuple[int | None, bool] | None = None
        self._disk = disk
        self._post = post

    def __len__(self) -> int:
        return len(self.contents)

    def open(self, chat: "Chat") -> None:
        """Take the waiting messages of another chat from its file."""
        self.chat, self.contents, self._reworded = chat, list(chat.waiting), None
        self.held = bool(self.contents)

    def clear(self) -> None:
        self.contents, self.held, self._reworded = [], False, None

    async def add(self, content: Content) -> None:
        await self._keep([*self.contents, content])

    async def drop(self, index: int) -> None:
        """Take one back."""
        self._is_gone(index)
        await self._keep([*self.contents[:index], *self.contents[index + 1 :]])

    def take(self, index: int) -> Content:
        """One to be sent; in the file it waits until `sent`, when it is a message."""
        self._is_gone(index)
        return self.contents.pop(index)

    def _is_gone(self, index: int) -> None:
        """Renumber the messages behind a removed one."""
        if self._reworded is not None and (at := self._reworded[0]) is not None:
            self._reworded = None if at == index else at - (index < at), self._reworded[1]

    async def sent(self) -> None:
        """Keep the messages that still wait, once one was sent."""
        await self._keep(self.contents)

    def hold(self) -> None:
        """Send none until the user says so."""
        self.held = bool(self.contents)
        self._post(ChatChanged())

    def release(self) -> None:
        """Send them again, one after the other, if none is being changed: else after that."""
        if self._reworded is None:
            self.held = False
        else:
            self._reworded = self._reworded[0], False

    def begin_reword(self, index: int) -> Content | None:
        """The one to be changed; none is sent meanwhile."""
        if index >= len(self.contents):
            return None
        self._reworded = index, self.held
        self.hold()
        return self.contents[index]

    async def end_reword(self, content: Content | None) -> bool:
        """Store the reworded content, or leave the message as it was; True where sending continues.

        A message that is gone meanwhile waits again, behind the others.
        """
        if self._reworded is None:
            return False
        (index, held), self._reworded = self._reworded, None
        if content is not None:
            at = len(self.contents) if index is None else index
            await self._keep([*self.contents[:at], content, *self.contents[at + 1 :]])
        return not held

    async def _keep(self, contents: list[Content]) -> None:
        self.contents, self.held = contents, self.held and bool(contents)
        chat = self.chat
        if chat is not None and chat.waiting != tuple(contents):
            await self._disk.run(chat.wait, contents)
        self._post(ChatChanged())

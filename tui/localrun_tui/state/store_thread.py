"""The one thread for the disk, so that writes are in order, and the chats that it owns."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from localrun.base.errors import LocalrunError
from localrun.base.settings import read_settings

if TYPE_CHECKING:
    from localrun.base.content import Content
    from localrun.chat.images import ImageShelf
    from localrun.chat.journal import Chat, ChatStore, ChatSummary

T = TypeVar("T")
_RECALLED_CHATS = 8


class StoreThread:
    """Runs work one piece after the other; `store` and chats are for that work only."""

    def __init__(self, open_store: "Callable[[], ChatStore]") -> None:
        self._open_store = open_store
        self._store: ChatStore | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="disk")

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run `work` on the thread and return its result, without blocking the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def submit(self, work: Callable[..., T], *arguments: Any) -> "Future[T]":
        """Queue work from another thread; does not wait."""
        return self._thread.submit(work, *arguments)

    @property
    def notice(self) -> str:
        """A notice of what is not kept from the start, for the user."""
        return self._store.notice if self._store else ""

    def store(self) -> "ChatStore":
        """The chats on disk, opened when first needed. On this thread only."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def images(self) -> "ImageShelf":
        """The images of chats. On this thread only; what it returns is for any."""
        return self.store().images

    def unwritten(self) -> "list[ChatSummary]":
        """Chats that are lost when the app ends. On this thread only."""
        return self._store.unwritten() if self._store else []

    def warm_up(self) -> None:
        """Read what the list needs of every chat, so that it opens as quickly as ever. On this thread only."""
        self.store().summaries()

    def last_prompts(self) -> "list[Content]":
        """Messages to the models in the chats that were used last, oldest first. On this thread only."""
        store, prompts = self.store(), []
        for summary in reversed(store.summaries()[:_RECALLED_CHATS]):
            with suppress(LocalrunError):  # one that cannot be read says so when it is opened
                messages = store.peek(summary.id).tree.messages()
                prompts += [message.content for message in messages if message.role == "user"]
        return prompts

    def create(self, model: str) -> "Chat":
        """An empty chat; it is on disk from its first message on. On this thread only."""
        return self.store().create(model=model, system=read_settings().system or "")

    def open(self, chat_id: str, at: str | None) -> "Chat":
        """A chat, on the branch of the message `at` if that is given and there. On this thread only."""
        chat = self.store().open(chat_id)
        if at is not None and at in chat.tree and chat.tree[at] not in chat.tree.path(chat.tree.head):
            chat.select(at)
        return chat

    def close(self) -> None:
        """After what it was given; waits for that."""
        if self._store is not None:
            self._thread.submit(self._store.close)
        self._thread.shutdown(wait=True)

"""The one object that owns the engine client and the chats. Its state changes on the event loop only.

What touches the disk runs on one thread, in order; a load and an answer have a thread each. Screens await its methods,
which raise LocalrunError, and hear of what happens meanwhile by messages.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from textual.message import Message as TextualMessage

from localrun.base.events import CacheView, Completion, ModelInfo
from localrun.base.request import Request, Sampling

from .choice import Choice
from .messages import ChatChanged, ChatOpened, LoadBegan, LoadEnded, LoadProgressed, TurnBegan
from .model_slot import LoadGivenUpError, ModelSlot, OpenClient
from .turn import Turn

if TYPE_CHECKING:
    from localrun.chat.journal import Chat, ChatStore, ChatSummary
    from localrun.chat.tree import Message

T = TypeVar("T")


class Session:
    """The current chat and the model that answers in it."""

    def __init__(
        self,
        open_client: OpenClient,
        open_store: "Callable[[], ChatStore]",
        post: Callable[[TextualMessage], Any],
    ) -> None:
        self.model = ModelSlot(open_client)
        self.chat: Chat | None = None
        self.turn: Turn | None = None
        self.last: Completion | None = None
        self.waiting = ""  # a message typed before the one before it was answered
        self._unanswered: tuple[Chat, str] | None = None  # sent before there was a model
        self._open_store = open_store
        self._store: ChatStore | None = None
        self._post = post
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="disk")

    # ---- model

    @property
    def info(self) -> ModelInfo | None:
        return self.model.info

    async def load(self, choice: Choice) -> None:
        """Load `choice`; a message sent meanwhile is answered afterwards. Nothing happens when it is given up."""
        self.stop()
        self._post(LoadBegan(choice))
        try:
            info = await self.model.load(choice, lambda done, total: self._post(LoadProgressed(done, total)))
        except LoadGivenUpError:
            self._post(LoadEnded(None))
            return
        except BaseException:
            self._post(LoadEnded(None))
            raise
        self._post(LoadEnded(info))
        if self._unanswered:
            await self.answer(*self._unanswered)

    async def view(self) -> CacheView | None:
        """What the KV cache holds."""
        client = self.model.client
        return await asyncio.to_thread(client.view) if client else None

    # ---- answers

    @property
    def answering(self) -> bool:
        return self.turn is not None and not self.turn.over

    @property
    def busy(self) -> bool:
        """Whether a message has to wait for its turn."""
        return self.answering or self._unanswered is not None

    async def send(self, text: str) -> None:
        """Put the user's message on disk and answer it; while another one is being answered, it waits."""
        if self.busy:
            self.waiting = f"{self.waiting}\n\n{text}" if self.waiting else text
            return
        chat = self.chat or await self.new_chat()
        message = await self.on_disk(chat.add_user, text)
        self._post(ChatChanged())
        await self.answer(chat, message.id)

    async def answer(self, chat: "Chat", message_id: str) -> None:
        """Answer a user's message, or remember to do so when there is a model."""
        client = self.model.client
        if client is None:
            self._unanswered = (chat, message_id)
            return
        self._unanswered = None
        request = await self.on_disk(self._request, chat, message_id)
        self.turn = Turn(chat, message_id, self._keep)
        self.turn.start(client, request)
        self._post(TurnBegan(self.turn))

    async def next(self) -> None:
        """After an answer: send what waited for it."""
        text, self.waiting = self.waiting, ""
        if text:
            await self.send(text)

    async def edit(self, message_id: str, text: str) -> None:
        """Say it in other words, as a branch beside the first, and answer that."""
        if self.chat is None:
            return
        message = await self.on_disk(self.chat.edit, message_id, text)
        self._post(ChatChanged())
        await self.answer(self.chat, message.id)

    async def select(self, message_id: str) -> None:
        """Walk to another branch."""
        if self.chat is not None:
            await self.on_disk(self.chat.select, message_id)
            self._post(ChatChanged())

    def stop(self) -> None:
        """End the answer under way; what came of it is kept."""
        client = self.model.client
        if self.answering and client is not None:
            asyncio.get_running_loop().run_in_executor(None, client.cancel)

    def _request(self, chat: "Chat", message_id: str) -> Request:
        return Request(
            messages=tuple(chat.request_messages(message_id)),
            sampling=Sampling(),
            known_ids=chat.known_ids(message_id),
            overflow="roll" if chat.policy == "roll" else "stop",
            now=chat.created,
            chat_id=chat.id,
        )

    def _keep(self, turn: Turn) -> None:
        """Write the answer down, whole or half. On the turn's thread."""
        if turn.done or turn.text or turn.thinking:
            self._disk.submit(_write_answer, turn).result()

    # ---- chats

    async def on_disk(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run `work` on the thread that owns the chats."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, work, *arguments)

    async def chats(self) -> "list[ChatSummary]":
        """Every chat, newest first."""
        return await self.on_disk(lambda: self.store().summaries())

    async def new_chat(self) -> "Chat":
        chat = await self.on_disk(lambda: self.store().create(model=self.info.name if self.info else ""))
        self.chat = chat
        self._post(ChatOpened())
        return chat

    async def open_chat(self, chat_id: str) -> None:
        self.chat = await self.on_disk(lambda: self.store().open(chat_id))
        self._post(ChatOpened())

    def store(self) -> "ChatStore":
        """The chats on disk, opened when first needed. On the disk's thread only."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    # ---- the end

    def close(self) -> None:
        """Keep what is there and end; waits a moment for the answer to be written."""
        turn, client = self.turn, self.model.client
        if turn is not None and not turn.over and client is not None:
            client.cancel()
            turn.wait(2.0)
        self.model.close()
        if self._store is not None:
            self._disk.submit(self._store.close)
        self._disk.shutdown(wait=True)


def _write_answer(turn: Turn) -> None:
    completion = turn.done.completion if turn.done else None
    ids = (*turn.done.prompt_ids, *turn.done.completion.token_ids) if turn.done else ()
    interrupted = completion is None or completion.stop_reason == "cancelled"
    message: Message = turn.chat.add_answer(turn.parent_id, turn.text, turn.thinking, ids, {}, interrupted)
    turn.answer_id = message.id

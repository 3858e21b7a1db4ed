"""The one object that owns the engine client and the chats. Its state changes on the event loop only.

What touches the disk runs on one thread, in order; a load and an answer have a thread each. Screens await its methods,
which raise LocalrunError, and hear of what happens meanwhile by messages.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from textual.message import Message as TextualMessage

from localrun.base.events import CacheView, ModelInfo
from localrun.base.request import Request, Think
from localrun.fit.rates import Rates, known_rates
from localrun_tui.state.attachments import title_for
from localrun_tui.state.messages import ChatChanged, ChatOpened, LoadBegan, LoadEnded, LoadProgressed, TurnBegan
from localrun_tui.state.model_slot import LoadGivenUpError, ModelSlot, OpenClient
from localrun_tui.state.turn import Turn

if TYPE_CHECKING:
    from localrun.chat.journal import Chat, ChatStore
    from localrun_tui.state.choice import ModelChoice

T = TypeVar("T")
_LAST_WORDS = 2.0  # seconds that an answer has to be written when the app ends


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
        self.rates: Rates | None = None  # of this machine, where they were measured
        self.think: Think = "auto"
        self.waiting: list[str] = []  # messages sent while the one before them was being answered
        self.held = False  # they are not sent before the user says so
        self.unanswered: tuple[Chat, str] | None = None  # sent before there was a model
        self.asking = False  # an answer is about to begin
        self._open_store = open_store
        self._store: ChatStore | None = None
        self._post = post
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="disk")

    # ---- model

    @property
    def info(self) -> ModelInfo | None:
        return self.model.info

    async def load(self, choice: "ModelChoice") -> None:
        """Load `choice`; a message sent meanwhile is answered afterwards. Nothing happens when it is given up."""
        await self.stop()
        if self.chat is not None and self.chat.kept:
            choice = replace(choice, chat_id=self.chat.id)
        self._post(LoadBegan(choice))
        info = None
        try:
            info = await self.model.load(choice, lambda done, total: self._post(LoadProgressed(done, total)))
        except LoadGivenUpError:
            pass
        finally:
            self._post(LoadEnded(info))
        self.rates = await asyncio.to_thread(known_rates)
        if info and self.unanswered:
            await self.answer(*self.unanswered)

    async def view(self) -> CacheView | None:
        """What the KV cache holds."""
        client = self.model.client
        return await asyncio.to_thread(client.view) if client else None

    # ---- answers

    @property
    def answering(self) -> bool:
        """Whether an answer is on its way."""
        return self.turn is not None and not self.turn.over

    async def send(self, text: str) -> None:
        """Put the user's message on disk and answer it; while the one before is unanswered, it waits."""
        if self._busy:
            await self._wait([*self.waiting, text])
            return
        self.asking = True
        try:
            chat = self.chat or await self.new_chat()
            title = title_for(text)
            if title and not chat.title:
                await self.run_on_store_thread(lambda: chat.set(title=title))
            message = await self.run_on_store_thread(chat.add_user, text)
            await self.answer(chat, message.id)
        finally:
            self.asking = False

    @property
    def _busy(self) -> bool:
        """Whether a message has to wait."""
        return self.answering or self.asking or self.unanswered is not None

    async def _wait(self, texts: list[str]) -> None:
        """What waits from now on; in the chat's file until each is a message, for the case of a crash."""
        self.waiting, self.held = texts, self.held and bool(texts)
        chat = self.chat
        if chat is not None and chat.waiting != tuple(texts):
            await self.run_on_store_thread(lambda: chat.set(waiting=list(texts)))
        self._post(ChatChanged())

    async def send_waiting(self, index: int = 0) -> None:
        """Send one of those that wait; the next one goes after its answer."""
        self.held = False
        if index < len(self.waiting) and not self._busy:
            text = self.waiting.pop(index)
            await self.send(text)
            await self._wait(self.waiting)  # in the file it waits until it is a message

    def hold(self) -> None:
        """Send nothing of what waits until the user says so."""
        self.held = bool(self.waiting)
        self._post(ChatChanged())

    async def drop_waiting(self, index: int) -> None:
        await self._wait([*self.waiting[:index], *self.waiting[index + 1 :]])

    async def reword_waiting(self, index: int, text: str) -> None:
        await self._wait([*self.waiting[:index], text, *self.waiting[index + 1 :]])

    async def answer(self, chat: "Chat", message_id: str) -> None:
        """Answer a user's message, or remember to do so when there is a model."""
        client = self.model.client
        self.asking = client is not None
        self.unanswered = None if client else (chat, message_id)
        self._post(ChatChanged())
        if client is None:
            return
        try:
            await self.run_on_store_thread(chat.rewind, message_id)
            request = await self.run_on_store_thread(self._request, chat, message_id)
            self.turn = Turn(chat, message_id, client.info, self._keep, self._keep_half)
            self.turn.start(client, request)
            self._post(TurnBegan(self.turn))
        finally:
            self.asking = False

    async def edit(self, message_id: str, text: str) -> None:
        """Say it in other words, as a branch beside the first, and answer that."""
        if self.chat is not None:
            await self.stop()
            message = await self.run_on_store_thread(self.chat.edit, message_id, text)
            await self.answer(self.chat, message.id)

    async def regenerate(self, message_id: str) -> None:
        """Another answer: to this message of the user, or in place of this answer."""
        if self.chat is not None and message_id in self.chat.tree:
            await self.stop()
            message = self.chat.tree[message_id]
            asked = message.parent if message.role == "assistant" else message.id
            if asked is not None:
                await self.answer(self.chat, asked)

    async def select(self, message_id: str) -> None:
        """Walk to another branch."""
        if self.chat is not None:
            await self.stop()
            await self.run_on_store_thread(self.chat.select, message_id)
            self._post(ChatChanged(at=message_id))

    async def stop(self) -> None:
        """End the answer under way and wait until what came of it is kept."""
        turn = self.turn
        if turn is not None and not turn.over:
            self.hold()
            threading.Thread(target=turn.cancel, name="cancel", daemon=True).start()
            await asyncio.to_thread(turn.wait, 30.0)

    def _keep(self, turn: Turn) -> None:
        from localrun_tui.state.answers import keep_answer

        self._disk.submit(keep_answer, turn).result()

    def _keep_half(self, turn: Turn) -> None:
        from localrun_tui.state.answers import keep_half

        self._disk.submit(keep_half, turn)

    def _request(self, chat: "Chat", message_id: str) -> Request:
        from localrun_tui.state.answers import build_request

        return build_request(chat, message_id, self.think, self.info.ctx if self.info else 0)

    # ---- chats

    @property
    def notice(self) -> str:
        """What is not kept from the start, for the user."""
        return self._store.notice if self._store else ""

    @property
    def problem(self) -> str:
        """What could not be written just now."""
        return self.chat.problem if self.chat else ""

    async def run_on_store_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run `work` on the thread that owns the chats."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, work, *arguments)

    def store(self) -> "ChatStore":
        """The chats on disk, opened when first needed. On the disk's thread only."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    async def new_chat(self) -> "Chat":
        """An empty chat; it is on disk from its first message on."""
        self.waiting, self.held = [], False
        self.chat = await self.run_on_store_thread(self._create, self.info.name if self.info else "")
        self._post(ChatOpened())
        return self.chat

    def _create(self, model: str) -> "Chat":
        from localrun.base.settings import read_settings

        return self.store().create(model=model, system=read_settings().system or "")

    async def open_chat(self, chat_id: str, at: str | None = None) -> None:
        """Open a chat, on the branch of the message `at` if that is given and there."""
        self.chat = await self.run_on_store_thread(self._open, chat_id, at)
        self.waiting = list(self.chat.waiting)
        self.held = bool(self.waiting)
        self._post(ChatOpened(at))

    def _open(self, chat_id: str, at: str | None) -> "Chat":
        chat = self.store().open(chat_id)
        if at is not None and at in chat.tree and chat.tree[at] not in chat.tree.path(chat.tree.head):
            chat.select(at)
        return chat

    # ---- the end

    def close(self) -> None:
        """Keep what is there and end; waits a moment for the answer to be written."""
        turn = self.turn
        if turn is not None and not turn.over:
            turn.cancel()
            turn.wait(_LAST_WORDS)
        self.model.close()
        if self._store is not None:
            self._disk.submit(self._store.close)
        self._disk.shutdown(wait=True)

"""The one object that owns the engine client and the chats. Its state changes on the event loop only.

What touches the disk runs on a thread, a load and an answer have a thread each. Screens await the session's methods,
which raise LocalrunError, and hear of what happens meanwhile by messages.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.message import Message as TextualMessage

from localrun.base.content import Content
from localrun.base.errors import UsageError
from localrun.base.events import ModelInfo
from localrun.base.request import Request
from localrun.chat.attachments import title_for
from localrun.chat.sight import require_sight, unseen_words
from localrun.chat.token_odds import N_OTHERS
from localrun.chat.turn import may_go_on
from localrun.client.choice import held_by
from localrun.client.model_slot import LoadGivenUpError, ModelSlot, OpenClient
from localrun.fit.rates import Rates
from localrun_tui.state.app_server import AppServer
from localrun_tui.state.chat_tools import AppTools
from localrun_tui.state.messages import (
    ChatChanged,
    ChatOpened,
    LoadBegan,
    LoadEnded,
    LoadProgressed,
    ModelWanted,
    Sending,
    ToolAsked,
    TurnBegan,
)
from localrun_tui.state.shelf import Shelf
from localrun_tui.state.store_thread import StoreThread
from localrun_tui.state.turn import Turn
from localrun_tui.state.waiting import WaitingMessages

if TYPE_CHECKING:
    from localrun.chat.images import ImageShelf
    from localrun.chat.journal import Chat, ChatStore
    from localrun.chat.tree import Message
    from localrun.client.choice import ModelChoice
    from localrun.client.interface import EngineClient

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
        self.server = AppServer(self.model)
        self.disk = StoreThread(open_store)
        self.shelf = Shelf(self.disk, post)
        self.waiting = WaitingMessages(self.disk, post)
        self.tools = AppTools(lambda pending: post(ToolAsked(pending)))
        self.chat: Chat | None = None
        self.prompts: list[Content] = []  # sent in any chat, the oldest first
        self.turn: Turn | None = None
        self.rates: Rates | None = None  # of this machine, where they were measured
        self.present: ModelChoice | None = None  # the last one that was loaded
        self.unanswered: tuple[Chat, str] | None = None  # sent before there was a model
        self.asking = False  # an answer is about to begin
        self.wants_odds = False  # of the tokens of a server's answers, which tells them with an answer only
        self._opening = asyncio.Lock()  # held until a chat that was asked for is the current one
        self._beginning = asyncio.Lock()  # held until an answer that was asked for is the one under way
        self.post = post

    # ---- model

    @property
    def info(self) -> ModelInfo | None:
        return self.model.info

    async def load(
        self, choice: "ModelChoice", instead_of: "ModelChoice | None" = None, for_chat: bool = False
    ) -> bool:
        """Load `choice`; a message sent meanwhile is answered afterwards. Gives whether it is there now: it is not
        when it was given up. `instead_of` comes back in its place then. `for_chat`: the chat was held with it."""
        await self.stop()
        if self.chat is not None and self.chat.kept:
            choice = replace(choice, chat_id=self.chat.id)
        self.post(LoadBegan(choice, instead_of, for_chat))
        info = None
        try:
            info = await self.model.load(choice, lambda done, total: self.post(LoadProgressed(done, total)))
        except LoadGivenUpError:
            pass
        finally:
            self.post(LoadEnded(info))
        if info:
            self.present = choice
        self.rates = await asyncio.to_thread(_known_rates)
        if info and self.unanswered:
            await self.answer(*self.unanswered)
        return info is not None

    # ---- answers

    @property
    def under_way(self) -> Turn | None:
        """The answer under way."""
        return None if self.turn is None or self.turn.over else self.turn

    @property
    def under_way_here(self) -> Turn | None:
        """The answer under way, if it is one of the current chat."""
        turn = self.under_way
        return turn if turn is not None and turn.chat is self.chat else None

    @property
    def answered_last(self) -> bool:
        """Whether the last answer that was begun here is one of the current chat."""
        return self.turn is not None and self.chat is not None and self.turn.chat.id == self.chat.id

    @property
    def answering(self) -> bool:
        return self.under_way is not None

    async def send(self, content: Content) -> None:
        """Put the user's message on disk and answer it; while the one before is unanswered, it waits.

        Raises UsageError, before that, for images that the model does not see.
        """
        await self.opened()
        require_sight(self.info, content)
        if self._busy:
            await self.waiting.add(content)
            return
        self.asking = True
        self.post(Sending())
        try:
            chat = self.chat or await self.new_chat()
            title = title_for(content)
            if title and not chat.title:
                await self.disk.run(lambda: chat.set(title=title))
            message = await self.disk.run(chat.add_user, content)
            await self.answer(chat, message.id)
        finally:
            self.asking = False

    @property
    def about_to_answer(self) -> bool:
        """Whether an answer begins by itself: one was asked for, or was waiting for the model, which is there now."""
        return self.asking or (self.unanswered is not None and self.info is not None)

    @property
    def _busy(self) -> bool:
        """Whether a message has to wait."""
        return self.answering or self.asking or self.unanswered is not None

    async def send_waiting(self, index: int = 0) -> None:
        """Send one of those that wait; the next one goes after its answer."""
        self.waiting.release()
        if index < len(self.waiting) and not self._busy:
            require_sight(self.info, self.waiting.contents[index])
            await self.send(self.waiting.take(index))
            await self.waiting.sent()

    async def end_reword(self, content: Content | None) -> None:
        """End the change of a waiting message; then all goes on as before."""
        if await self.waiting.end_reword(content):
            await self.send_waiting()

    async def answer(
        self, chat: "Chat", message_id: str, begun: "Message | None" = None, temperature: float | None = None
    ) -> None:
        """Answer a user's message, or remember to do so when there is a model. `begun` is an answer to go on with."""
        client = self.model.client
        self.asking = client is not None
        self.unanswered = None if client else (chat, message_id)
        self.post(ChatChanged())
        if client is None:
            if not self.model.loading:
                self.post(ModelWanted())
            return
        try:
            async with self._beginning:
                await self.stop()  # one that was asked for a moment before
                await self._begin_answer(client, chat, message_id, begun, temperature)
        finally:
            self.asking = False

    async def _begin_answer(
        self, client: "EngineClient", chat: "Chat", message_id: str, begun: "Message | None", temperature: float | None
    ) -> None:
        self.asking = True
        require_sight(client.info, chat.tree[message_id].content)
        await self.disk.run(chat.rewind, message_id)
        if self.present is not None:
            from localrun.chat.chat_settings import hold_with

            await self.disk.run(hold_with, chat, held_by(self.present, client.info.name))
        await asyncio.to_thread(self.tools.wait_for_servers)
        request = await self.disk.run(self._request, chat, message_id, begun)
        unseen = await self.disk.run(unseen_words, chat, message_id, client.info)
        logprobs = N_OTHERS if self.wants_odds and client.info.engine == "remote" else request.logprobs
        request = replace(request, tools=self.tools.for_model, logprobs=logprobs)
        if temperature is not None:
            request = replace(request, sampling=replace(request.sampling, temperature=temperature))
        self.turn = Turn(chat, message_id, request, client, self.disk, self.tools, begun, unseen)
        self.post(TurnBegan(self.turn))

    async def go_on(self, message_id: str) -> None:
        """Continue an answer that was cut or changed, as a branch beside it."""
        chat = self.chat
        cut = chat.tree[message_id] if chat is not None and message_id in chat.tree else None
        if chat is None or cut is None or cut.parent is None or not may_go_on(cut):
            raise UsageError("this answer was not cut", "Ctrl+R asks for another one")
        if self.model.client is None:
            raise UsageError("no model is loaded", "Ctrl+O chooses one")
        await self.stop()
        await self.answer(chat, cut.parent, cut)

    async def regenerate(self, message_id: str, temperature: float | None = None) -> None:
        """Another answer: to this message of the user, or in place of this answer; at another temperature, if given."""
        if self.chat is not None and message_id in self.chat.tree:
            await self.stop()
            message = self.chat.tree[message_id]
            asked = message.parent if message.role == "assistant" else message.id
            if asked is not None:
                await self.answer(self.chat, asked, temperature=temperature)

    async def stop(self) -> None:
        """Stop the answer under way and wait until it is kept."""
        if turn := self.under_way:
            self.waiting.hold()
            threading.Thread(target=turn.cancel, name="cancel", daemon=True).start()
            await asyncio.to_thread(turn.wait, 30.0)

    def _request(self, chat: "Chat", message_id: str, begun: "Message | None") -> Request:
        from localrun_tui.state.answers import build_request, continue_request

        sees = self.info is None or not self.info.why_blind
        if begun is not None:
            return continue_request(chat, begun, sees)
        return build_request(chat, message_id, self.info.ctx if self.info else 0, sees)

    # ---- chats

    async def images(self) -> "ImageShelf":
        """Where images are kept that are attached."""
        return await self.disk.run(self.disk.images)

    @property
    def problem(self) -> str:
        """The reason why something could not be written just now."""
        return self.chat.problem if self.chat else ""

    async def new_chat(self) -> "Chat":
        """An empty chat; it is on disk from its first message on."""
        async with self._opening:
            self.waiting.clear()
            self.tools.leave(self.chat)
            self.chat = self.waiting.chat = await self.disk.run(self.disk.create, self.info.name if self.info else "")
        self.post(ChatOpened(new=True))
        return self.chat

    async def open_chat(self, chat_id: str, at: str | None = None) -> None:
        """Open a chat, on the branch of the message `at` if that is given and there."""
        async with self._opening:
            self.tools.leave(self.chat)
            self.chat = await self.disk.run(self.disk.open, chat_id, at)
            self.waiting.open(self.chat)
        self.post(ChatOpened(at))

    async def opened(self) -> None:
        """Once a chat that was asked for is there: what was typed after that is meant for it."""
        async with self._opening:
            return

    # ---- the end

    def close(self) -> None:
        """Keep what is there and end; waits a moment for the answer to be written."""
        if turn := self.under_way:
            turn.cancel()
            turn.wait(_LAST_WORDS)
        self.tools.close()
        self.model.close()
        self.disk.close()


def _known_rates() -> Rates | None:
    """Asked when a model is there: what is imported for it is not needed before."""
    from localrun.fit.machine_rates import known_rates

    return known_rates()

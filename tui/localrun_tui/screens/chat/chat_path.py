"""The selected branch of the chat as message widgets: which there are, and how they follow the tree."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.content import Content
from textual.widget import Widget

from localrun.base.events import Loop
from localrun.base.sanitize import clean
from localrun.chat.overflow import horizon_of
from localrun_tui.screens.chat.live_answer import LiveAnswer
from localrun_tui.screens.chat.message_view import MessageView
from localrun_tui.screens.chat.transcript import Transcript
from localrun_tui.state.session import Session
from localrun_tui.state.turn import Turn

if TYPE_CHECKING:
    from localrun.chat.tree import Message


class ChatPath:
    """Keeps a Transcript in line with the session's chat."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._shown: list[str] = []
        self._horizon: int | None = None
        self.live: LiveAnswer | None = None
        self._lock = asyncio.Lock()  # one change of the transcript at a time

    async def show(self, transcript: Transcript, welcome: Widget, anew: bool = False, at: str | None = None) -> None:
        """Add what is new; build it all again only where something in between is another message. `at` is the one to
        have in sight when all is built."""
        async with self._lock:
            path, horizon, known = self._path(), self._find_horizon(), len(self._shown)
            ids = [message.id for message in path]
            if not anew and known and ids[:known] == self._shown and horizon == self._horizon:
                for message in path[known:]:
                    await transcript.add(self._view(message))
            else:
                wanted = ids.index(at) if at in ids else None
                await transcript.show([partial(self._view, message) for message in path], horizon, welcome, wanted)
                await self._show_live(transcript)
            self._shown, self._horizon = ids, horizon
            self._mark_unanswered(transcript)

    async def begin(self, transcript: Transcript, turn: Turn, welcome: Widget) -> None:
        """An answer is on its way."""
        self.live = LiveAnswer(turn, self._live_view())
        await self.show(transcript, welcome)
        if not self.live.view.is_attached:
            await self._show_live(transcript)

    async def _show_live(self, transcript: Transcript) -> None:
        if self.live is not None and self.live.turn.chat is self._session.chat:
            self.live = LiveAnswer(self.live.turn, self._live_view())
            await transcript.add(self.live.view)

    async def show_kept(self, transcript: Transcript, turn: Turn) -> bool:
        """`turn` is over: it is a message now, or it never was one. False where another has taken its place."""
        async with self._lock:
            live = self.live
            if live is None or live.turn is not turn:
                return False
            self.live = None
            if turn.chat is not self._session.chat:
                return True
            live.show_new()
            if turn.answer_id is None:
                await live.view.remove()
                self._mark_unanswered(transcript)
                return True
            message = turn.chat.tree[turn.answer_id]
            live.view.note = note_of(message, self._reads_again(message))
            live.view.finish(message, self._branch(message))
            self._shown.append(message.id)
        if self._find_horizon() != self._horizon:
            await self.show(transcript, Widget(), anew=True)
        return True

    def _mark_unanswered(self, transcript: Transcript) -> None:
        """Say below a last question that nobody answers what it waits for."""
        views = transcript.views
        for view in views:
            if view.message is not None and view.message.role == "user":
                note = self._waits_for() if view is views[-1] else Content()
                if note != view.note:
                    view.note = note
                    view.changed()

    def _waits_for(self) -> Content:
        session = self._session
        if session.asking or session.answering or self.live is not None:
            return Content()
        words = "◌ not answered: Ctrl+R asks again"
        if session.info is None:
            loading = session.model.loading
            words = "◌ waits until the model is loaded" if loading else "◌ waits for a model: Ctrl+O chooses a model"
        return Content.styled(words, "$text-warning")

    async def walk(self, message_id: str, step: int) -> None:
        """To the version of a message that is `step` further."""
        chat = self._session.chat
        if chat is not None and message_id in chat.tree:
            siblings = chat.tree.siblings(message_id)
            index = siblings.index(message_id) + step
            if 0 <= index < len(siblings):
                await self._session.select(siblings[index])

    def last_stats(self) -> Mapping[str, Any]:
        """Figures of the last answer on this branch."""
        return next((message.stats for message in reversed(self._path()) if message.stats), {})

    def tokens(self, turn: Turn | None) -> int:
        """How many tokens of the context are taken, an answer on its way included."""
        if turn is not None and turn.prefill is not None:
            return turn.prefill.done + turn.n_tokens
        stats = self.last_stats()
        held = stats.get("held_tokens")
        return held or int(stats.get("prompt_tokens") or 0) + int(stats.get("completion_tokens") or 0)

    def _path(self) -> "list[Message]":
        """Without the answer on its way, which may be written down a moment before it is settled here."""
        chat, live = self._session.chat, self.live
        if chat is None:
            return []
        return chat.tree.path(live.turn.parent_id if live and live.turn.chat is chat else chat.tree.head)

    def _live_view(self) -> MessageView:
        return MessageView(None, self._session.info.name if self._session.info else "answer")

    def _find_horizon(self) -> int | None:
        """Number of the first message that the model sees all of; None when it sees everything."""
        chat, info = self._session.chat, self._session.info
        if chat is None:
            return None
        first = horizon_of(chat, info.ctx if info else 0)
        return next((n for n, message in enumerate(chat.tree.path(chat.tree.head)) if message.id == first), None)

    def _view(self, message: "Message") -> MessageView:
        name = {"user": "You", "system": "System"}.get(message.role) or str(
            message.stats.get("model") or (self._session.chat.model if self._session.chat else "") or "Answer"
        )
        view = MessageView(message, name, self._branch(message))
        view.note = note_of(message, self._reads_again(message))
        return view

    def _reads_again(self, message: "Message") -> bool:
        """Whether most of a chat that was read before had to be read again."""
        chat, stats = self._session.chat, message.stats
        assert chat is not None
        cached, prompt = int(stats.get("cached_tokens") or 0), int(stats.get("prompt_tokens") or 0)
        return len(chat.tree.path(message.id)) > 2 and cached * 2 < prompt

    def _branch(self, message: "Message") -> tuple[int, int]:
        assert self._session.chat is not None
        siblings = self._session.chat.tree.siblings(message.id)
        return siblings.index(message.id) + 1, len(siblings)


def note_of(message: "Message", reads_again: bool) -> Content:
    """The last line of a message: what became of it, where that needs saying."""
    if message.role != "assistant":
        return Content()
    stats = message.stats
    if stats.get("error"):
        reason = clean(str(stats["error"]), keep_newlines=False)
        words = f"⚠ cut off: {reason}. What had come is kept"
        words += "." if stats.get("backend") == "remote" else "; your next message starts the engine again."
        return Content.styled(words, "$text-error")
    if message.unfinished:
        return Content.styled("⚠ cut off: localrun ended while this was written. What had come is kept.", "$text-error")
    if message.interrupted:
        return Content.styled("◼ stopped", "$text-warning")
    if period := stats.get("loop_period"):
        ended = "◼ stopped" if stats.get("stop_reason") == "loop" else "⟳"
        return Content.styled(f"{ended}: {Loop(int(period))}", "$text-warning")
    parts = []
    if stats.get("stop_reason") == "length":
        full = int(stats.get("prompt_tokens") or 0) + int(stats.get("completion_tokens") or 0) >= int(
            stats.get("ctx") or 0
        )
        parts.append("◼ the context is full" if full else "◼ ended at the longest answer that is set")
    if reads_again and stats.get("cache_note"):
        parts.append("read again: " + clean(str(stats["cache_note"]), keep_newlines=False))
    return Content.styled(" · ".join(parts), "$foreground-muted")

"""The selected branch of the chat as message widgets that follow the tree."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.content import Content

from localrun.chat.overflow import horizon_of
from localrun.chat.token_estimate import about_tokens
from localrun_tui.screens.chat.live_answer import LiveAnswer
from localrun_tui.screens.chat.message_notes import counted_note, note_of, unanswered_note
from localrun_tui.screens.chat.message_view import MessageView
from localrun_tui.screens.chat.transcript import Transcript
from localrun_tui.screens.chat.welcome import Welcome
from localrun_tui.state.session import Session
from localrun_tui.state.turn import Turn
from localrun_tui.widgets.model_name import model_name

if TYPE_CHECKING:
    from localrun.chat.tree import Message

_WRITER = (("another model", "model"), ("another precision", "precision"), ("other adapters", "adapters"))
_TELL = 1.0  # seconds between token counts; a new stage is shown at once


class ChatPath:
    """Keeps a Transcript in line with the session's chat, and with the answer under way in it."""

    def __init__(self, session: Session, transcript: Transcript) -> None:
        self._session = session
        self._transcript = transcript
        self._shown: list[str] = []
        self._horizon: int | None = None
        self.live: LiveAnswer | None = None
        self._lock = asyncio.Lock()  # one change of the transcript at a time

    # ---- messages

    @property
    def is_empty(self) -> bool:
        return not self._path()

    async def show(self, rebuild: bool = False, at: str | None = None) -> None:
        """Add what is new; build it all again only where something in between is another message. `at` is the one to
        have in sight when all is built."""
        async with self._lock:
            path, horizon, known = self._path(), self._find_horizon(), len(self._shown)
            ids = [message.id for message in path]
            if not rebuild and known and ids[:known] == self._shown and horizon == self._horizon:
                for message in path[known:]:
                    await self._transcript.add(self._view(message))
            else:
                wanted = ids.index(at) if at in ids else None
                welcome = Welcome(self._session.info, self._session.model.loading, self._session.disk.notice)
                make = [partial(self._view, one) for one in path]
                await self._transcript.show(make, horizon, welcome, wanted, go_there=rebuild)
                await self._show_live()
            self._shown, self._horizon = ids, horizon
            self._mark_unanswered()

    # ---- an answer under way

    async def begin(self, turn: Turn) -> None:
        """Begin the view of an answer. One before that has not settled yet gives way: it is a message now."""
        before, self.live = self.live, LiveAnswer(turn, self._live_view())
        if before is not None:
            await before.view.remove()
        await self.show()
        if not self.live.view.is_attached:
            await self._show_live()

    async def follow(self, turn: Turn) -> AsyncIterator[None]:
        """Draw what is new of it, again and again, until it is over or another takes its place, and no longer. Yields
        where there is something else to tell of it elsewhere."""
        shown: object = None
        when = 0.0
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        turn.ended.add_done_callback(lambda _: None if loop.is_closed() else loop.call_soon_threadsafe(over.set))
        while (live := self.live) is not None and live.turn is turn and not turn.over:
            seconds = live.draw()
            stage = turn.prompt, turn.image, turn.phase
            if stage != shown or time.monotonic() - when > _TELL:
                shown, when = stage, time.monotonic()
                yield
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):  # without a task, which each drawing would wait for
                    await over.wait()

    async def _show_live(self) -> None:
        if self.live is not None and self.live.turn.chat is self._session.chat:
            self.live = LiveAnswer(self.live.turn, self._live_view())
            await self._transcript.add(self.live.view)

    async def show_kept(self, turn: Turn) -> bool:
        """`turn` is over: it is a message now, or it never was one. False where another has taken its place."""
        async with self._lock:
            live = self.live
            if live is None or live.turn is not turn:
                return False
            self.live = None
            if turn.chat is not self._session.chat:
                return True
            live.show_new()
            if (message := turn.kept) is None:
                await live.view.remove()
            else:
                live.view.document.note = self._note(message)
                live.view.finish(message, self._branch(message))
                self._shown.append(message.id)
        await self.show()  # another branch may have been chosen meanwhile, and the model may see less now
        return True

    # ---- figures

    def last_stats(self) -> Mapping[str, Any]:
        """Figures of the last answer on this branch."""
        return next((message.stats for message in reversed(self._path()) if message.stats), {})

    def tokens(self, turn: Turn | None) -> int:
        """Number of context tokens in use, including an answer under way."""
        if turn is not None and turn.n_held:
            return turn.n_held
        return _held(self._path())

    def tokens_before(self, message_id: str) -> int:
        """Number of context tokens that the messages before this one take."""
        chat = self._session.chat
        return _held(chat.tree.path(message_id)[:-1] if chat is not None and message_id in chat.tree else [])

    # ---- views

    def _path(self) -> "list[Message]":
        """Without the answer on its way, which may be written down a moment before it is settled here."""
        chat, live = self._session.chat, self.live
        if chat is None:
            return []
        return chat.tree.path(live.turn.question if live and live.turn.chat is chat else chat.tree.head)

    def _mark_unanswered(self) -> None:
        """Say below an unanswered last question what it waits for."""
        session, views = self._session, self._transcript.views
        on_its_way = session.about_to_answer or session.answering or self.live is not None
        for view in views:
            if view.message is not None and view.message.role == "user":
                note = unanswered_note(session) if view is views[-1] and not on_its_way else Content()
                if note != view.document.note:
                    view.document.note = note
                    view.changed()

    def _live_view(self) -> MessageView:
        return MessageView(None, model_name(self._session.info.name).plain if self._session.info else "answer")

    def _find_horizon(self) -> int | None:
        """Number of the first message that the model sees all of; None when it sees everything."""
        chat, info = self._session.chat, self._session.info
        if chat is None:
            return None
        first = horizon_of(chat, info.ctx if info else 0)
        return next((n for n, message in enumerate(chat.tree.path(chat.tree.head)) if message.id == first), None)

    def _view(self, message: "Message") -> MessageView:
        model = message.stats.get("model") or (self._session.chat.model if self._session.chat else "") or "Answer"
        name = {"user": "You", "system": "System"}.get(message.role) or model_name(str(model)).plain
        view = MessageView(message, name, self._branch(message))
        view.document.note = self._note(message)
        return view

    def _note(self, message: "Message") -> Content:
        chat = self._session.chat
        assert chat is not None
        notes = [note_of(message, self._why_again(message), self._session.rates)]
        if message.role == "assistant" and message.parent is not None:
            notes.insert(0, counted_note(chat.tree[message.parent].content))
        return Content("\n").join(note for note in notes if note)

    def _why_again(self, message: "Message") -> str:
        """Why most of a chat that was read before had to be read again; empty where it was not, or nothing says why."""
        chat, stats = self._session.chat, message.stats
        assert chat is not None
        before = next((one for one in reversed(chat.tree.path(message.id)[:-1]) if one.role == "assistant"), None)
        cached, prompt = int(stats.get("cached_tokens") or 0), int(stats.get("prompt_tokens") or 0)
        if before is None or cached * 2 >= prompt:
            return ""
        if not before.stats.get("model"):
            return "the answer before was edited"
        other = next((name for name, field in _WRITER if before.stats.get(field) != stats.get(field)), "")
        return f"{other} wrote the answer before" if other else str(stats.get("cache_note") or "")

    def _branch(self, message: "Message") -> tuple[int, int]:
        assert self._session.chat is not None
        siblings = self._session.chat.tree.siblings(message.id)
        return siblings.index(message.id) + 1, len(siblings)


def _held(messages: "Sequence[Message]") -> int:
    """Tokens in the context after these messages, by estimate where none were counted: of an answer that was edited or
    cut off, and a question without an answer."""
    written = 0
    for message in reversed(messages):
        stats = message.stats
        if held := stats.get("held_tokens"):
            return int(held) + written
        written += int(stats.get("completion_tokens") or about_tokens(message.text))
        if prompt := stats.get("prompt_tokens"):
            return int(prompt) + written
    return written

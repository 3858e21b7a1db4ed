"""What the chat shows, and how it follows the session; what the user does with it is in chat_screen.py."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Mapping
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from localrun.base.errors import LocalrunError, PromptTooLongError
from localrun.base.events import CacheView
from localrun.base.sanitize import clean
from localrun_tui.screens.chat.chat_path import ChatPath
from localrun_tui.screens.chat.composer import Composer
from localrun_tui.screens.chat.history_actions import HistoryActions
from localrun_tui.screens.chat.history_list import HistoryList
from localrun_tui.screens.chat.inspector import Inspector
from localrun_tui.screens.chat.message_view import MessageView
from localrun_tui.screens.chat.status_line import StatusLine, context_parts, live_parts, stats_parts
from localrun_tui.screens.chat.top_bar import TopBar
from localrun_tui.screens.chat.transcript import Transcript
from localrun_tui.screens.chat.waiting_list import WaitingList
from localrun_tui.screens.chat.welcome import Welcome
from localrun_tui.state import messages
from localrun_tui.state.session import Session
from localrun_tui.state.turn import Turn, unexpected
from localrun_tui.widgets.compositor import LeanCompositor
from localrun_tui.widgets.key_bar import KeyBar

_WIDE = 100  # columns from which on panels stand beside the chat
_TELL = 1.0  # seconds between two counts of the tokens that came; another stage is told at once
_LOOK = 0.5  # seconds between two looks into the cache


class ChatView(Screen[None]):
    """The widgets of the chat, kept in line with the session."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012
    AUTO_FOCUS = "#editor"

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._compositor = LeanCompositor()
        self.session = session
        self.path = ChatPath(session)
        self.history = HistoryActions(self, session)
        self._told = 0.0
        self._loading = ""  # name of the model on its way
        self._looked = 0.0
        self._view: CacheView | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="bar"):
            yield TopBar()
        with Horizontal(id="body"):
            yield HistoryList()
            with Vertical(id="chat"):
                yield Transcript()
                yield WaitingList()
                yield Static("", id="notice", markup=False)
                yield Composer()
            yield Inspector()
        yield StatusLine()
        yield KeyBar()

    def on_mount(self) -> None:
        self.run_guarded(self.show_path())

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    # ---- what the session tells

    def on_load_began(self, event: messages.LoadBegan) -> None:
        self.say("")
        self._loading = event.choice.stored.name
        self.query_one(TopBar).show_loading(self._loading, 0, 0)
        self.refresh_bindings()
        self.run_guarded(self.show_path())

    def on_load_progressed(self, event: messages.LoadProgressed) -> None:
        if self.session.model.loading:
            self.query_one(TopBar).show_loading(self._loading, event.done, event.total)

    def on_load_ended(self, event: messages.LoadEnded) -> None:
        if not self.session.model.loading:  # else another load has taken its place
            self.query_one(TopBar).show_model(self.session.info)
            self.refresh_bindings()
            self.run_guarded(self.show_path())

    def on_chat_opened(self, event: messages.ChatOpened) -> None:
        self.composer.edit(None)
        self.run_guarded(self.show_path(anew=True, at=event.at))
        self.run_guarded(self.history.show())

    def on_chat_changed(self, event: messages.ChatChanged) -> None:
        self.run_guarded(self.show_path(at=event.at))

    async def on_turn_began(self, event: messages.TurnBegan) -> None:
        self.say("")
        await self.path.begin(self.transcript, event.turn, self._welcome())
        self.refresh_bindings()
        self.composer.editor.cursor_blink = False  # every blink would be a drawing more
        if not gc.get_freeze_count():
            gc.freeze()  # all that was made so far stays: looking through it takes longer than a drawing
        self.run_guarded(self._follow(event.turn))

    # ---- an answer on its way

    async def _follow(self, turn: Turn) -> None:
        """Show what is new of an answer on its way, again and again, until it is over or another takes its place."""
        told: object = None
        while (live := self.path.live) is not None and live.turn is turn:
            if turn.over:
                await self._end(turn)
                return
            seconds = live.draw()
            stage = turn.prefill, turn.first_token is None
            if stage != told or time.monotonic() - self._told > _TELL:
                told, self._told = stage, time.monotonic()
                self.show_state()
            await asyncio.sleep(seconds)

    async def _end(self, turn: Turn) -> None:
        if not await self.path.show_kept(self.transcript, turn):
            return
        self.composer.editor.cursor_blink = True
        self._looked = 0.0  # the last look was at a cache that still grew
        self.show_state()
        self.refresh_bindings()
        await self.history.show()
        if turn.error is None:
            if not self.session.held:
                await self.session.send_waiting()
            return
        self.session.hold()
        if isinstance(turn.error, PromptTooLongError) and turn.chat is self.session.chat:
            from localrun_tui.screens.chat.too_long import mend_too_long

            if await mend_too_long(self.app, self.session, turn, turn.error):
                self.composer.edit(turn.parent_id, turn.chat.tree[turn.parent_id].text)
        elif turn.answer_id is None:  # else the half answer says so
            self.show_error(turn.error)

    # ---- showing

    async def show_path(self, anew: bool = False, at: str | None = None) -> None:
        """Bring the transcript in line with the chat; `at` is the message to have in sight if all is shown anew."""
        await self.path.show(self.transcript, self._welcome(), anew, at)
        self.query_one(TopBar).show_title(self.session.chat.title if self.session.chat else "")
        waiting = self.query_one(WaitingList)
        if waiting.has_focus and not self.session.waiting:
            self.set_focus(self.composer.editor)
        waiting.show(self.session.waiting, self.session.held)
        if self.composer.editor.below_messages != bool(self.transcript.views):
            self.composer.editor.below_messages = bool(self.transcript.views)
            self.refresh_bindings()
        self.show_state()

    def show_state(self) -> None:
        """The status line and the inspector."""
        info, turn, stats = self.session.info, self.session.turn, self._stats()
        live = turn if self.session.answering else None
        left = live_parts(live) if live else stats_parts(stats, self.session.rates)
        if n := len(self.session.waiting):
            words = "1 message" if n == 1 else f"{n} messages"
            does = "held: ↑ shows them" if self.session.held else "waits" if n == 1 else "wait"
            left.insert(0, Content.styled(f"{words} {does}", "$text-accent"))
        used = self.path.tokens(live)
        kv_bytes = 0 if live else int(self.path.last_stats().get("kv_bytes") or 0)
        self.query_one(StatusLine).show(left, context_parts(used, info, kv_bytes))
        inspector = self.query_one(Inspector)
        if inspector.display:
            inspector.show(stats, self._view, self.session.rates)
            if time.monotonic() - self._looked > _LOOK:
                self._looked = time.monotonic()
                self.run_guarded(self._look())

    def show_panel(self, panel: Widget, shown: bool) -> None:
        """Show or hide a panel; where the screen is narrow it takes the place of the chat, and of the other one."""
        panels = (self.query_one(HistoryList), self.query_one(Inspector))
        if self.has_class("-narrow") and shown:
            for other in panels:
                other.display = False
        panel.display = shown
        self.set_class(any(each.display for each in panels), "-panel")
        self._looked = 0.0
        self.refresh_bindings()
        self.show_state()

    async def show_downloads(self) -> None:
        """Tell from now on in the first line what is being downloaded."""
        from localrun_tui.screens.downloads.downloads import DownloadBadge

        if not self.query(DownloadBadge):
            await self.query_one("#bar").mount(DownloadBadge())

    def on_descendant_focus(self) -> None:
        self.show_state()

    def _welcome(self) -> Welcome:
        return Welcome(self.session.info, self.session.model.loading, self.session.notice)

    def _stats(self) -> Mapping[str, Any]:
        """Figures of the message that has the focus, else of the last answer."""
        view = self.focused
        chosen = view.message.stats if isinstance(view, MessageView) and view.message is not None else {}
        return chosen or self.path.last_stats()

    async def _look(self) -> None:
        """Ask the engine what the cache holds, which may take a moment."""
        self._view = await self.session.view()
        self.query_one(Inspector).show(self._stats(), self._view, self.session.rates)

    # ---- telling the user

    def run_guarded(self, work: Awaitable[Any]) -> None:
        """Do something that may fail; a failure is told, and the app goes on."""
        self.run_worker(self._guard(work), exit_on_error=False)

    async def _guard(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except LocalrunError as error:
            self.show_error(error)
        except Exception as error:
            self.show_error(unexpected(error))
        problem = self.session.problem
        if problem:
            self.say(f"⚠ {problem}", "error")

    def show_error(self, error: LocalrunError) -> None:
        self.say(f"✕ {error.message}" + (f"\n  {error.hint}" if error.hint else ""), "error")

    def say(self, text: str, kind: str = "") -> None:
        """A notice above the composer, until the next; an empty one goes away."""
        notice = self.query_one("#notice", Static)
        notice.update(clean(text))
        notice.set_class(kind == "error", "error")
        notice.display = bool(text)

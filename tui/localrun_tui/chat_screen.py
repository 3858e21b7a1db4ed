"""The chat: what was said, what is being said, and where to type."""

import time
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Resize
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Footer, Static

from localrun.base.errors import LocalrunError, PromptTooLongError
from localrun.base.events import CacheView
from localrun.base.sanitize import clean

from . import messages
from .chat_path import ChatPath
from .composer import Composer
from .history_actions import HistoryActions
from .history_list import ChatOptions, HistoryList
from .inspector import Inspector
from .message_view import MessageView
from .session import Session
from .status_line import StatusLine, context_parts, live_parts, stats_parts
from .top_bar import TopBar
from .transcript import Transcript
from .turn import Turn, unexpected
from .welcome import Welcome

if TYPE_CHECKING:
    from .app import LocalrunApp

_WIDE = 100  # columns from which on panels stand beside the chat
_BATCH = 0.08  # seconds between two drawings of an answer on its way
_LOOK = 0.5  # seconds between two looks into the cache


class ChatScreen(Screen[None]):
    """One chat at a time; panels for all chats and for what the engine does."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012
    AUTO_FOCUS = "#editor"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", id="chat.stop"),
        Binding("escape", "back", "Back to typing; leave a panel or an edit", show=False, id="chat.back"),
        Binding("ctrl+o", "app.models", "Models", id="chat.models"),
        Binding("ctrl+l", "history", "Chats", id="chat.history"),
        Binding("ctrl+n", "new_chat", "New", show=False, id="chat.new"),
        Binding("ctrl+g", "inspector", "Inspector", id="chat.inspector"),
        Binding("ctrl+t", "attach", "Attach", show=False, id="chat.attach"),
        Binding("ctrl+r", "again", "Answer again", show=False, id="chat.again"),
        Binding("ctrl+s", "chat_settings", "This chat: system prompt, sampling", show=False, id="chat.settings"),
        Binding("pageup", "scroll(-1)", "Scroll up", show=False, id="chat.page-up", priority=True),
        Binding("pagedown", "scroll(1)", "Scroll down", show=False, id="chat.page-down", priority=True),
    ]
    app: "LocalrunApp"

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.path = ChatPath(session)
        self.history = HistoryActions(self, session)
        self.problem = ""  # what is not kept
        self._ticker: Timer | None = None
        self._editing: str | None = None  # the message whose new wording is being typed
        self._looked = 0.0
        self._view: CacheView | None = None

    def compose(self) -> ComposeResult:
        yield TopBar()
        with Horizontal(id="body"):
            yield HistoryList()
            with Vertical(id="chat"):
                yield Transcript()
                yield Static("", id="notice", markup=False)
                yield Composer()
            yield Inspector()
        yield StatusLine()
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._ticker = self.set_interval(_BATCH, self._draw, pause=True)
        self.attempt(self._show_path())
        self._show_state()

    def on_resize(self, event: Resize) -> None:
        self.query_one(Footer).show_command_palette = event.size.width >= _WIDE

    # ---- what the session tells

    def on_load_began(self, event: messages.LoadBegan) -> None:
        self._say("")
        self._loading_name = event.choice.stored.name
        self.query_one(TopBar).show_loading(self._loading_name, 0, 0)
        self.attempt(self._show_path())

    def on_load_progressed(self, event: messages.LoadProgressed) -> None:
        if self.session.model.loading:
            self.query_one(TopBar).show_loading(self._loading_name, event.done, event.total)

    def on_load_ended(self, event: messages.LoadEnded) -> None:
        self.query_one(TopBar).show_model(self.session.info)
        self.refresh_bindings()
        self.attempt(self._show_path())
        self._show_state()

    def on_chat_opened(self) -> None:
        self._leave_edit()
        self.attempt(self._show_path(anew=True))
        self.attempt(self.history.show())

    def on_chat_changed(self) -> None:
        self.attempt(self._show_path())

    async def on_turn_began(self, event: messages.TurnBegan) -> None:
        await self.path.begin(self.query_one(Transcript), event.turn, self._welcome())
        if self._ticker is not None:
            self._ticker.resume()
        self._say("")
        self.refresh_bindings()

    # ---- drawing

    def _draw(self) -> None:
        """Every batch while an answer is on its way."""
        live = self.path.live
        if live is None:
            return
        if live.turn.over:
            if self._ticker is not None:
                self._ticker.pause()
            self.attempt(self._end())
        else:
            if live.view.is_attached:
                live.draw()
            self._show_state()

    async def _end(self) -> None:
        turn = await self.path.settle(self.query_one(Transcript))
        if turn is None:
            return
        self._show_state()
        self.refresh_bindings()
        await self.history.show()
        if isinstance(turn.error, PromptTooLongError):
            await self._overflow(turn, turn.error)
        elif turn.error is not None and turn.answer_id is None:  # else the half answer says so
            self.show_error(turn.error)
        if not turn.error:
            await self.session.send_waiting()

    async def _overflow(self, turn: Turn, error: PromptTooLongError) -> None:
        """The user chooses what to do, unless that did not help."""
        from .overflow import ask_overflow

        if turn.chat.policy == "stop":
            await ask_overflow(self.app, self.session, turn, error.message)
        else:
            self.show_error(error)

    async def _show_path(self, anew: bool = False) -> None:
        """Bring the transcript in line with the chat."""
        await self.path.show(self.query_one(Transcript), self._welcome(), anew)
        title = self.session.chat.title if self.session.chat else ""
        self.query_one(TopBar).show_title(title)
        self._show_state()

    def _welcome(self) -> Welcome:
        return Welcome(self.session.info, self.session.model.loading, self.problem)

    def _show_state(self) -> None:
        """The status line and the inspector."""
        info, turn = self.session.info, self.session.turn
        stats = self._stats()
        weights = info.weights_bytes if info else 0
        live = turn is not None and self.session.answering
        left = live_parts(turn) if live and turn else stats_parts(stats, weights)
        if self.session.waiting:
            left.insert(0, Content.styled("your next message waits", "$text-accent"))
        used = self.path.tokens(turn if live else None)
        kv = int(stats.get("kv_bytes") or 0)
        self.query_one(StatusLine).show(left, context_parts(used, info, kv))
        if self.query_one(Inspector).display:
            self.query_one(Inspector).show(stats, self._view, weights)
            if time.monotonic() - self._looked > _LOOK:
                self._looked = time.monotonic()
                self.attempt(self._look())

    def _stats(self) -> Mapping[str, Any]:
        """Figures of the message that has the focus, else of the last answer."""
        view = self.focused
        chosen = view.message.stats if isinstance(view, MessageView) and view.message is not None else {}
        return chosen or self.path.last_stats()

    def on_descendant_focus(self) -> None:
        self._show_state()

    async def _look(self) -> None:
        self._view = await self.session.view()
        info = self.session.info
        self.query_one(Inspector).show(self._stats(), self._view, info.weights_bytes if info else 0)

    # ---- telling the user

    def attempt(self, work: Awaitable[Any]) -> None:
        """Do something that may fail; a failure is told, and the app goes on."""
        self.run_worker(self._attempt(work), exit_on_error=False)

    async def _attempt(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except LocalrunError as error:
            self.show_error(error)
        except Exception as error:
            self.show_error(unexpected(error))

    def show_error(self, error: LocalrunError) -> None:
        self._say(f"✕ {error.message}" + (f"\n  {error.hint}" if error.hint else ""), "error")

    def _say(self, text: str, kind: str = "") -> None:
        notice = self.query_one("#notice", Static)
        notice.update(clean(text))
        notice.set_class(kind == "error", "error")
        notice.display = bool(text)

    # ---- the composer

    @on(Composer.Submitted)
    def _submit(self, event: Composer.Submitted) -> None:
        editing = self._editing
        self._leave_edit()
        self._say("")
        self.attempt(self.session.edit(editing, event.text) if editing else self.session.send(event.text))

    @on(Composer.LeaveUp)
    def _go_up(self) -> None:
        views = self.query_one(Transcript).views
        if views:
            views[-1].focus()

    def _leave_edit(self) -> None:
        if self._editing is not None:
            self._editing = None
            self.query_one(Composer).edit_mode(False)

    # ---- a message

    @on(MessageView.Act)
    def _act(self, event: MessageView.Act) -> None:
        message = event.view.message
        if event.what == "go":
            self._go(event.view, event.step)
        elif event.what == "links":
            self.attempt(self._open_link(event.view.links))
        elif message is None:
            return
        elif event.what == "walk":
            self.attempt(self.path.walk(message.id, event.step))
        elif event.what == "again":
            self.attempt(self.session.again(message.id))
        elif event.what == "edit":
            self._editing = message.id
            self.query_one(Composer).edit_mode(True, message.text)

    def _go(self, view: MessageView, step: int) -> None:
        views = self.query_one(Transcript).views
        index = views.index(view) + step
        if index >= len(views):
            self.query_one(Composer).editor.focus()
        elif index >= 0:
            views[index].focus()
        else:
            self.attempt(self.query_one(Transcript).show_earlier())

    @on(MessageView.Copy)
    def _copy(self, event: MessageView.Copy) -> None:
        self.app.copy_to_clipboard(event.text)
        self.notify(f"{event.what} copied", timeout=2, markup=False)

    async def _open_link(self, links: list[str]) -> None:
        from .links import open_link

        await open_link(self.app, links)

    @on(Transcript.WantsEarlier)
    def _show_earlier(self) -> None:
        self.attempt(self.query_one(Transcript).show_earlier())

    # ---- chats

    @on(HistoryList.Search)
    def _search(self, event: HistoryList.Search) -> None:
        self.attempt(self.history.show(event.words))

    @on(HistoryList.Open)
    def _open(self, event: HistoryList.Open) -> None:
        self.attempt(self.session.open_chat(event.chat_id))
        if self.has_class("-narrow"):
            self._show_panel(self.query_one(HistoryList), False)
        self.query_one(Composer).editor.focus()

    @on(ChatOptions.Act)
    def _chat_act(self, event: ChatOptions.Act) -> None:
        if event.what == "delete":
            self.attempt(self._delete(event.chat_id))
        else:
            act = self.history.rename if event.what == "rename" else self.history.export
            self.attempt(act(event.chat_id))

    async def _delete(self, chat_id: str) -> None:
        deleted = await self.history.delete(chat_id)
        if deleted and self.session.chat is not None and self.session.chat.id == chat_id:
            await self.session.new_chat()

    # ---- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            return self._editing is None and (self.session.answering or self.session.model.loading)
        return True

    def action_stop(self) -> None:
        """End the answer, or the load."""
        if self.session.answering:
            self.attempt(self.session.stop())
        else:
            self.session.model.give_up()

    def action_back(self) -> None:
        """Leave what is open; else go back to typing."""
        editor = self.query_one(Composer).editor
        if self._editing is not None:
            self._leave_edit()
        elif self.has_class("-narrow"):
            self._show_panel(self.query_one(HistoryList), False)
            self._show_panel(self.query_one(Inspector), False)
        editor.focus()

    def action_new_chat(self) -> None:
        self.attempt(self.session.new_chat())
        self.query_one(Composer).editor.focus()

    def _show_panel(self, panel: Widget, shown: bool) -> None:
        """Show or hide a panel; where the screen is narrow it takes the place of the chat, and of the other one."""
        if self.has_class("-narrow") and shown:
            for other in (self.query_one(HistoryList), self.query_one(Inspector)):
                other.display = False
        panel.display = shown
        narrow_panels = any(p.display for p in (self.query_one(HistoryList), self.query_one(Inspector)))
        self.set_class(narrow_panels, "-panel")

    def action_history(self) -> None:
        panel = self.query_one(HistoryList)
        if panel.display and panel.has_focus_within:
            self._show_panel(panel, False)
            self.query_one(Composer).editor.focus()
            return
        self._show_panel(panel, True)
        panel.options.focus()
        self.attempt(self.history.show())

    def action_focus_search(self) -> None:
        self.query_one("#search").focus()

    def action_inspector(self) -> None:
        panel = self.query_one(Inspector)
        self._show_panel(panel, not panel.display)
        if panel.display:
            panel.focus()
        else:
            self.query_one(Composer).editor.focus()
        self._looked = 0.0
        self._show_state()

    def action_scroll(self, pages: int) -> None:
        transcript = self.query_one(Transcript)
        transcript.scroll_relative(y=pages * max(transcript.size.height - 2, 1), animate=False)

    def action_attach(self) -> None:
        self.attempt(self._attach_file())

    async def _attach_file(self) -> None:
        from .ask import AskFile
        from .attachments import read_attachment

        path = await self.app.push_screen_wait(AskFile("Attach a text file", Path.cwd()))
        if path is not None:
            self.query_one(Composer).attach(await self.session.on_disk(read_attachment, path))

    def action_again(self) -> None:
        if self.session.chat is not None and self.session.chat.tree.head is not None:
            self.attempt(self.session.again(self.session.chat.tree.head))

    def action_chat_settings(self) -> None:
        self.attempt(self._chat_settings())

    async def _chat_settings(self) -> None:
        from .chat_settings import ChatSettings, ChatSettingsScreen

        session = self.session
        chat = session.chat or await session.new_chat()
        before = ChatSettings(chat.system, chat.preset, chat.policy, session.think)
        after = await self.app.push_screen_wait(ChatSettingsScreen(before))
        if after is not None and after != before:
            session.think = after.think
            await session.on_disk(lambda: chat.set(system=after.system, preset=after.preset, policy=after.policy))

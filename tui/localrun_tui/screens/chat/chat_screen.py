"""The screen of the chat: its parts and its keys."""

from collections.abc import Awaitable
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.screen import Screen

from localrun_tui.screens.chat.chat_keys import CHAT_KEYS
from localrun_tui.screens.chat.chat_pane import ChatPane
from localrun_tui.screens.chat.composer import Composer
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.screens.chat.figures import Figures
from localrun_tui.screens.chat.history_actions import HistoryActions
from localrun_tui.screens.chat.history_list import ChatOptions, HistoryList
from localrun_tui.screens.chat.inspector import Inspector
from localrun_tui.screens.chat.panels import Panels
from localrun_tui.screens.chat.slash import SlashCommands
from localrun_tui.screens.chat.status_line import StatusLine
from localrun_tui.screens.chat.top_bar import TopBar
from localrun_tui.screens.chat.unseen import tell_unseen
from localrun_tui.state import messages
from localrun_tui.state.desktop import Desktop
from localrun_tui.state.file_reading import FileReading
from localrun_tui.state.other_writers import SECONDS, OtherWriters
from localrun_tui.state.session import Session
from localrun_tui.widgets.compositor import LeanCompositor
from localrun_tui.widgets.key_bar import KeyBar

_LOW = 10  # lines below which the editor has no frame


class ChatScreen(Screen[None]):
    """One chat, with panels for all chats and for the engine."""

    AUTO_FOCUS = "#editor"
    BINDINGS: ClassVar[list[BindingType]] = CHAT_KEYS

    def __init__(self, session: Session, desktop: Desktop) -> None:
        super().__init__()
        self._compositor = LeanCompositor()
        self.session = session
        self.chats = HistoryList()
        self.pane = ChatPane(session, desktop)
        self.path, self.transcript, self.composer = self.pane.path, self.pane.transcript, self.pane.composer
        self.top_bar, self.inspector, self.status_line = TopBar(), Inspector(), StatusLine()
        self.panels = Panels(self.chats, self.pane, self.inspector)
        self.history = HistoryActions(self.chats, session)
        self.slash = SlashCommands(self, session, self.composer, self.chats, self.history)
        self.figures = Figures(session, self.path, self.top_bar, self.status_line, self.inspector)

    def compose(self) -> ComposeResult:
        yield Horizontal(self.top_bar, id="bar")
        self.panels.begin(self.app.size.width)
        yield self.panels
        yield self.status_line
        yield KeyBar()

    def on_mount(self) -> None:
        self.run_guarded(self.pane.show())
        self.set_interval(SECONDS, OtherWriters(self.session).look)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.height < _LOW, "-low")

    # ---- messages of the session

    def on_load_began(self, event: messages.LoadBegan) -> None:
        if not self.session.model.loading:  # it is over, and its result may be shown already
            return
        self.top_bar.show_load(event.choice.stored.name)
        self.pane.notice.say_of_load(event.words)
        self.refresh_bindings()
        self.run_guarded(self.pane.show())

    def on_load_progressed(self, event: messages.LoadProgressed) -> None:
        if self.session.model.loading:
            self.top_bar.show_progress(event.done, event.total)

    def on_load_ended(self) -> None:
        if not self.session.model.loading:  # else another load has taken its place
            self.top_bar.show_model(self.session.info, self.session.present)
            self.pane.notice.end_of_load()
            self.refresh_bindings()
            self.run_guarded(self.pane.show())
            self.pane.count_draft()
            self.run_guarded(tell_unseen(self.session, self.pane.notice))

    async def on_model_wanted(self) -> None:
        if self.is_current:
            await self.run_action("app.models('Choose a model for your message')")

    def on_model_gone(self, event: messages.ModelGone) -> None:
        self.pane.notice.say(event.words)

    def on_chat_opened(self, event: messages.ChatOpened) -> None:
        self.composer.edit(None)
        self.pane.notice.leave_chat()
        if (pending := self.pane.consent.pending) is not None and pending.is_open:
            self.pane.ask(pending)
        self.run_guarded(self.pane.show(rebuild=True, at=event.at))
        self.run_guarded(self.history.show())
        if not event.new:
            self.run_guarded(self._take_up())

    async def _take_up(self) -> None:
        """Load the model of the chat."""
        from localrun_tui.state.continue_chat import continue_chat

        await continue_chat(self.session)

    def on_chat_changed(self, event: messages.ChatChanged) -> None:
        self.run_guarded(self.pane.show(at=event.at))

    def on_written_elsewhere(self, event: messages.WrittenElsewhere) -> None:
        from localrun.chat.other_writers import Others

        if event.chat is self.session.chat:
            on_branch = event.what is Others.WROTE_ELSEWHERE
            self.pane.notice.say(event.what.value + (": Ctrl+↑ and ←→ go there" if on_branch else ""))
            rebuild = on_branch and self.transcript.is_at_end  # for its number; who reads further up stays there
            self.run_guarded(self.pane.show(rebuild))

    def on_tool_asked(self, event: messages.ToolAsked) -> None:
        if event.pending.is_open:
            self.pane.ask(event.pending)
            self.refresh_bindings()

    async def on_turn_began(self, event: messages.TurnBegan) -> None:
        await self.pane.begin(event.turn)

    @on(Composer.Command)
    def _run_command(self, event: Composer.Command) -> None:
        self.run_guarded(self.slash.run(event.name, event.arguments), opens=not event.arguments, begins=True)

    @on(FileReading.Progressed)
    def _tell_of_reading(self, event: FileReading.Progressed) -> None:
        self.pane.notice.say_of_reading(f"{event.words}  Esc stops it" if event.words else "")
        self.refresh_bindings()

    def on_unmount(self) -> None:
        self.composer.attached.reading.stop()

    # ---- figures

    @on(messages.Sending)
    @on(ChatPane.Changed)
    def show_figures(self) -> None:
        self.figures.show(self.focused)

    def on_descendant_focus(self) -> None:
        self.show_figures()

    @on(ChatPane.Answered)
    @on(Panels.Changed)
    def _look_anew(self) -> None:
        self.inspector.look_anew()
        self.refresh_bindings()
        self.show_figures()

    @on(Inspector.WantsView)
    def _look(self) -> None:
        self.run_guarded(self.figures.look())

    # ---- the list of chats

    @on(Panels.Changed)
    def _fill_list(self) -> None:
        self.run_guarded(self.history.show(), opens=True)  # keys behind Ctrl+L are meant for its rows

    @on(ChatPane.Answered)
    def _list_anew(self) -> None:
        self.run_guarded(self.history.show())
        from localrun_tui.state.title_giver import IDLE, give_title

        self.set_timer(IDLE, lambda: self.run_guarded(give_title(self.session)))

    @on(HistoryList.Search)
    def _search(self, event: HistoryList.Search) -> None:
        self.run_guarded(self.history.show(event.words))

    @on(HistoryList.Open)
    def _open_chat(self, event: HistoryList.Open) -> None:
        if self.panels.covering:
            self.panels.show(self.chats, False)
        self.set_focus(self.composer.editor)
        self.run_guarded(self.session.open_chat(event.chat_id, event.message_id))

    @on(ChatOptions.Act)
    def _act(self, event: ChatOptions.Act) -> None:
        self.run_guarded(self.history.act(event.what, event.chat_id), opens=True)

    # ---- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            under_way = self.session.answering or self.session.model.loading
            return self.composer.attached.reading.under_way or (not self.composer.edited and under_way)
        if action == "consent":
            return self.pane.consent.display
        if action == "back":
            return not isinstance(self.focused, Editor) or self.panels.covering or bool(self.composer.edited)
        return True

    def action_stop(self) -> None:
        """Stop reading a file, else the answer, or the load."""
        if self.composer.attached.reading.under_way:
            self.composer.attached.reading.stop()
        elif self.session.answering:
            self.run_guarded(self.session.stop())
        elif self.session.model.loading:
            choice = self.session.model.choice
            self.session.model.give_up()
            name = choice.stored.name if choice is not None else "the model"
            self.pane.notice.say(f"The load of {name} was stopped.  Ctrl+O loads it again, or another")

    def action_consent(self) -> None:
        """Go to the question whether a tool may run."""
        self.pane.consent.go_to()

    def action_back(self) -> None:
        """Close an open panel; else go back to typing."""
        self.pane.leave_editing()
        self.panels.leave()

    def action_new_chat(self) -> None:
        self.panels.uncover()
        self.run_guarded(self.session.new_chat())
        self.set_focus(self.composer.editor)

    def action_history(self) -> None:
        """Open the list and focus it; from there, close it."""
        self.panels.go_to_history()

    def action_this_chat(self, what: str) -> None:
        """Apply an action of the list of chats to the open chat."""
        self.run_guarded(self.history.act_on_open(what), opens=True)

    def action_find(self) -> None:
        self.panels.uncover()
        self.pane.find_bar.open()

    def action_undelete(self) -> None:
        self.run_guarded(self.history.undelete())

    def action_inspector(self) -> None:
        self.panels.toggle_inspector()

    def action_scroll(self, pages: int) -> None:
        consent = self.pane.consent
        scrolled = consent.text if consent.has_focus_within else self.transcript
        scrolled = self.inspector if self.inspector.has_focus else scrolled
        scrolled.scroll_relative(y=pages * max(scrolled.size.height - 2, 1), animate=False)

    def action_regenerate(self) -> None:
        if self.session.chat is not None and self.session.chat.tree.head is not None:
            self.panels.uncover()
            self.run_guarded(self.session.regenerate(self.session.chat.tree.head))

    def action_attach(self) -> None:
        self.run_guarded(self.composer.choose_file(), opens=True)

    def action_chat_settings(self) -> None:
        from localrun_tui.screens.chat.chat_settings import change_chat_settings

        self.run_guarded(change_chat_settings(self.app, self.session), opens=True)

    # ---- for the app

    async def show_downloads(self) -> None:
        """Show downloads in the first line from now on."""
        from localrun_tui.screens.downloads.downloads import DownloadBadge

        if not self.query(DownloadBadge):
            await self.query_one("#bar").mount(DownloadBadge())

    def run_guarded(self, work: Awaitable[Any], opens: bool = False, begins: bool = False) -> None:
        """Run something that may fail; an error is shown above the composer. Keys wait for the dialog that it opens."""
        self.pane.run_guarded(work, opens, begins)

"""One chat: transcript, waiting messages, notice and composer, with the actions of each."""

import time
from collections.abc import Awaitable
from typing import Any

from textual import on
from textual.containers import Vertical
from textual.events import Click
from textual.message import Message as TextualMessage
from textual.worker import WorkType

from localrun.base.content import Content
from localrun.base.units import ms
from localrun.chat.left_out import TooLongError
from localrun_tui.screens.chat.attached_files import AttachedFiles
from localrun_tui.screens.chat.chat_path import ChatPath
from localrun_tui.screens.chat.composer import WAITING, Composer
from localrun_tui.screens.chat.consent_card import ConsentCard
from localrun_tui.screens.chat.draft_count import DraftCount
from localrun_tui.screens.chat.draft_keeper import DraftKeeper
from localrun_tui.screens.chat.failed_answer import tell_of_failure
from localrun_tui.screens.chat.find_bar import FindBar
from localrun_tui.screens.chat.find_in_chat import FindInChat
from localrun_tui.screens.chat.guard import WorkGuard
from localrun_tui.screens.chat.long_file import attach_long
from localrun_tui.screens.chat.message_document import MEASURE
from localrun_tui.screens.chat.message_view import MessageView
from localrun_tui.screens.chat.notice import Notice
from localrun_tui.screens.chat.transcript import NewText, Transcript
from localrun_tui.screens.chat.unseen import takes_back
from localrun_tui.screens.chat.waiting_list import WaitingList
from localrun_tui.state.branches import Branches
from localrun_tui.state.desktop import Desktop
from localrun_tui.state.pending_consent import PendingConsent
from localrun_tui.state.session import Session
from localrun_tui.state.turn import Turn

_WIDEST = MEASURE + 6  # cells: lines as one reads them, with the frame of a message and the scrollbar


class ChatPane(Vertical):
    """Shows the current chat of the session."""

    class Changed(TextualMessage):
        """Figures of the chat or of the answer under way have changed."""

    class Answered(TextualMessage):
        """An answer has ended and is kept."""

    def __init__(self, session: Session, desktop: Desktop) -> None:
        self.transcript = Transcript()
        self.new_text = NewText()
        self.waiting = WaitingList(self._edit_waiting)
        self.notice = Notice(lambda: session.chat)
        self.composer = Composer(session.images)
        self.find_bar = FindBar()
        self.consent = ConsentCard(self._to_editor)
        below = (self.new_text, self.waiting, self.notice, self.consent, self.find_bar, self.composer)
        super().__init__(self.transcript, *below)
        self.path = ChatPath(session, self.transcript)
        self._find = FindInChat(session, self.path, self.transcript, self.find_bar)
        self.composer.earlier = self._earlier
        self._session = session
        self._branches = Branches(session)
        self._desktop = desktop
        self._guard = WorkGuard(self, self.notice, session)
        self._draft_count = DraftCount(session, self.path, self.composer)
        self._draft = DraftKeeper(self.composer, session.disk, self.run_guarded)

    def _earlier(self) -> list[Content]:
        """Prompts that were sent in other chats, then those of this one; none while something waits above the editor,
        which the key goes to."""
        if self.waiting.display:
            return []
        messages = self._session.chat.tree.messages() if self._session.chat else ()
        return [*self._session.prompts, *(message.content for message in messages if message.role == "user")]

    def on_resize(self) -> None:
        """Keep the text in the middle of a pane that is wider than lines one reads."""
        self.styles.padding = (0, max(self.outer_size.width - _WIDEST, 0) // 2)
        self.composer.attached.fold.settle()

    async def show(self, rebuild: bool = False, at: str | None = None) -> None:
        """Follow the chat; `at` is the message to scroll to if everything is shown again."""
        await self.path.show(rebuild, at)
        waiting, editor = self._session.waiting, self.composer.editor
        if self.waiting.has_focus and not waiting:
            self.screen.set_focus(editor)
        self.waiting.show(waiting.contents, waiting.held)
        if editor.below_messages != bool(self.transcript.views):
            editor.below_messages = not editor.below_messages
            self.refresh_bindings()
        self.post_message(self.Changed())

    # ---- an answer under way

    async def begin(self, turn: Turn) -> None:
        """Show the answer, and follow it until it is over."""
        self.notice.say(f"⚠ {turn.unseen}" if turn.unseen else "")
        await self.path.begin(turn)
        self.refresh_bindings()
        self.composer.editor.cursor_blink = False  # each blink is a redraw
        self.run_guarded(self._follow(turn))

    async def _follow(self, turn: Turn) -> None:
        async for _ in self.path.follow(turn):
            self.post_message(self.Changed())
        if turn.kept is not None:
            seconds = time.monotonic() - turn.began
            self._desktop.tell(turn.chat.title or "localrun", f"the answer is ready ({ms(seconds * 1000)})", seconds)
        if await self.path.show_kept(turn):  # else another has taken its place
            self.composer.editor.cursor_blink = True
            self.post_message(self.Answered())
            await self._go_on(turn)

    async def _go_on(self, turn: Turn) -> None:
        """Send the next waiting message; else show an error that is not part of the chat."""
        session, error = self._session, turn.error
        if error is None:
            if not session.waiting.held:
                await session.send_waiting()
            return
        await tell_of_failure(turn, error, session, self.composer, self.notice)

    @on(Changed)
    def _tell_of_new_text(self) -> None:
        """Whether the user has scrolled up."""
        if self.transcript.is_at_end:
            self.new_text.display = False
        elif self._session.answering:
            self.new_text.display = True

    @on(Transcript.AtEnd)
    def _all_is_seen(self) -> None:
        self.new_text.display = False

    @on(Composer.ToEnd)
    def to_end(self) -> None:
        """Scroll to the end, and follow it."""
        self.transcript.scroll_end(animate=False)
        self.transcript.anchor()

    def _to_editor(self) -> None:
        self.screen.set_focus(self.composer.editor)

    def on_click(self, event: Click) -> None:
        if event.widget is self.new_text:
            self.to_end()

    def ask(self, pending: PendingConsent) -> None:
        """Show a question, and of which chat it is where another one is shown."""
        turn = self._session.under_way
        self.consent.show(pending, turn.chat.title if turn is not None and turn.chat is not self._session.chat else "")

    @on(Changed)
    def _settle_consent(self) -> None:
        self.consent.settle()

    @on(Changed)
    def _name_window(self) -> None:
        chat = self._session.chat
        title = f"{chat.title} · localrun" if chat is not None and chat.title else "localrun"
        self._desktop.name(f"● {title}" if self._session.answering else title)

    # ---- typing

    @on(Composer.Submitted)
    def _submit(self, event: Composer.Submitted) -> None:
        self.notice.clear()
        if takes_back(event, self._session.info, self.composer, self.notice):
            return
        if event.edited == WAITING:
            self.run_guarded(self._session.end_reword(event.content))
        elif event.edited is not None:
            self.run_guarded(self._branches.edit(event.edited, event.content))
        else:
            self._session.prompts.append(event.content)
            self.run_guarded(self._session.send(event.content))

    @on(Composer.Command)
    def _clear_notice(self) -> None:
        self.notice.clear()

    @on(Composer.Refused)
    def _refuse(self, event: Composer.Refused) -> None:
        if isinstance(event.error, TooLongError):
            error = event.error
            self.run_guarded(attach_long(self.app, self._session, self.composer, error.path, part=error.part))
        else:
            self.notice.say_error(event.error)

    @on(AttachedFiles.LeftOut)
    def _tell_of_left_out(self, event: AttachedFiles.LeftOut) -> None:
        self.notice.say(f"⚠ {event.words}")

    def leave_editing(self) -> None:
        """Stop editing a message; what was being typed before comes back."""
        if self.composer.edited:
            self.composer.edit(None)
            self.run_guarded(self._session.end_reword(None))

    @on(Composer.Drafted)
    def count_draft(self) -> None:
        self.transcript.mark(self.composer.edited)
        self._draft.keep_soon()
        count: WorkType[None] = self._draft_count.count
        self.run_worker(count, group="count", exclusive=True)

    # ---- finding words

    @on(FindBar.Look)
    def _look_for(self, event: FindBar.Look) -> None:
        self.run_guarded(self._find.look(event.words))

    @on(FindBar.Go)
    def _go_to_found(self, event: FindBar.Go) -> None:
        self.run_guarded(self._find.go(event.step))

    @on(FindBar.Leave)
    def _leave_finding(self) -> None:
        self.run_guarded(self._find.leave())
        self.screen.set_focus(self.composer.editor)

    # ---- waiting messages

    @on(WaitingList.Send)
    def _send_waiting(self, event: WaitingList.Send) -> None:
        self.run_guarded(self._session.send_waiting(event.index))

    @on(WaitingList.Drop)
    def _drop_waiting(self, event: WaitingList.Drop) -> None:
        self.run_guarded(self._session.waiting.drop(event.index))

    def _edit_waiting(self, index: int) -> None:
        if (content := self._session.waiting.begin_reword(index)) is not None:
            self.composer.edit(WAITING, content)

    # ---- messages

    @on(MessageView.Walk)
    def _walk(self, event: MessageView.Walk) -> None:
        if (message := event.view.message) is not None:
            self.run_guarded(self._branches.walk(message.id, event.step))

    @on(MessageView.GoOn)
    def _go_on_with(self, event: MessageView.GoOn) -> None:
        if (message := event.view.message) is not None:
            self.run_guarded(self._session.go_on(message.id))

    @on(MessageView.Regenerate)
    def _regenerate(self, event: MessageView.Regenerate) -> None:
        if (message := event.view.message) is not None:
            self.run_guarded(self._session.regenerate(message.id))

    @on(MessageView.OpenLinks)
    def _open_links(self, event: MessageView.OpenLinks) -> None:
        from localrun_tui.screens.chat.links import open_link

        self.run_guarded(open_link(self.app, event.view.document.links), opens=True)

    @on(Transcript.WantsEarlier)
    def _show_earlier(self) -> None:
        self.run_guarded(self.transcript.show_earlier())

    # ---- errors

    def run_guarded(self, work: Awaitable[Any], opens: bool = False, begins: bool = False) -> None:
        """Run something that may fail; an error is shown above the composer. Keys wait for the dialog that it opens."""
        self._guard.run(work, opens, begins)

"""What the user does in the chat: typing, keys, and what the widgets ask for."""

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType

from localrun_tui.screens.chat.chat_view import ChatView
from localrun_tui.screens.chat.composer import WAITING, Composer, Editor
from localrun_tui.screens.chat.history_list import ChatOptions, HistoryList
from localrun_tui.screens.chat.inspector import Inspector
from localrun_tui.screens.chat.message_view import MessageView
from localrun_tui.screens.chat.transcript import Transcript
from localrun_tui.screens.chat.waiting_list import WaitingList


class ChatScreen(ChatView):
    """One chat at a time; panels for all chats and for what the engine does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", id="chat.stop"),
        Binding("escape", "back", "Back", id="chat.back"),
        Binding("ctrl+o", "app.models", "Models", id="chat.models"),
        Binding("ctrl+l", "history", "Chats", id="chat.history"),
        Binding("ctrl+g", "inspector", "Inspector", id="chat.inspector"),
        Binding("ctrl+n", "new_chat", "New chat", show=False, id="chat.new"),
        Binding("ctrl+t", "attach", "Attach a text file", show=False, id="chat.attach"),
        Binding("ctrl+r", "regenerate", "Answer again", show=False, id="chat.regenerate"),
        Binding("ctrl+s", "chat_settings", "This chat: system prompt, sampling", show=False, id="chat.settings"),
        Binding("pageup", "scroll(-1)", "Scroll up", show=False, id="chat.page-up", priority=True),
        Binding("pagedown", "scroll(1)", "Scroll down", show=False, id="chat.page-down", priority=True),
    ]

    _reworded: tuple[int, bool] | None = None  # number of a waiting message that is edited; whether all were held

    # ---- the composer

    @on(Composer.Submitted)
    def _submit(self, event: Composer.Submitted) -> None:
        self.say("")
        self._show_messages()
        if event.edited == WAITING:
            self.run_guarded(self._reword(event.text))
        elif event.edited is not None:
            self.run_guarded(self.session.edit(event.edited, event.text))
        else:
            self.run_guarded(self.session.send(event.text))

    @on(Composer.LeaveUp)
    def _go_up(self) -> None:
        waiting = self.query_one(WaitingList)
        if waiting.display:
            self.set_focus(waiting)
            waiting.highlighted = waiting.option_count - 1
        else:
            self._to_messages()

    def _to_messages(self) -> None:
        views = self.transcript.views
        if views:
            self._show_messages()
            self.set_focus(views[-1])

    @on(WaitingList.Leave)
    def _leave_waiting(self, event: WaitingList.Leave) -> None:
        if event.step < 0:
            self._to_messages()
        else:
            self.set_focus(self.composer.editor)

    @on(WaitingList.Send)
    def _send_waiting(self, event: WaitingList.Send) -> None:
        self.run_guarded(self.session.send_waiting(event.index))

    @on(WaitingList.Drop)
    def _drop_waiting(self, event: WaitingList.Drop) -> None:
        self.run_guarded(self.session.drop_waiting(event.index))

    @on(WaitingList.Edit)
    def _edit_waiting(self, event: WaitingList.Edit) -> None:
        session, index = self.session, event.index
        if index < len(session.waiting):
            self._reworded = index, session.held
            session.hold()  # it is not sent while it is changed
            self.composer.edit(WAITING, session.waiting[index])

    async def _reword(self, text: str | None) -> None:
        """What waits is changed, or left as it was; then all goes on as before."""
        if self._reworded is None:
            return
        (index, held), self._reworded = self._reworded, None
        if text is not None:
            await self.session.reword_waiting(index, text)
        if not held:
            await self.session.send_waiting()

    def _show_messages(self) -> None:
        """Where panels take the place of the messages, close them."""
        if self.has_class("-narrow"):
            for panel in (self.query_one(HistoryList), self.query_one(Inspector)):
                self.show_panel(panel, False)

    # ---- a message

    @on(MessageView.Walk)
    def _walk(self, event: MessageView.Walk) -> None:
        if (message := event.view.message) is not None:
            self.run_guarded(self.path.walk(message.id, event.step))

    @on(MessageView.Edit)
    def _edit(self, event: MessageView.Edit) -> None:
        if (message := event.view.message) is not None:
            self.composer.edit(message.id, message.text)

    @on(MessageView.Regenerate)
    def _regenerate(self, event: MessageView.Regenerate) -> None:
        if (message := event.view.message) is not None:
            self.run_guarded(self.session.regenerate(message.id))

    @on(MessageView.Go)
    def _go(self, event: MessageView.Go) -> None:
        """To the next message; below the last one is the composer, above the first there may be earlier ones."""
        views = self.transcript.views
        index = views.index(event.view) + event.step
        if index >= len(views):
            waiting = self.query_one(WaitingList)
            self.set_focus(waiting if waiting.display else self.composer.editor)
        elif index >= 0:
            self.set_focus(views[index])
        else:
            self.run_guarded(self.transcript.show_earlier())

    @on(MessageView.Copy)
    def _copy(self, event: MessageView.Copy) -> None:
        self.app.copy_to_clipboard(event.text)
        self.notify(f"{event.what} copied", timeout=2, markup=False)

    @on(MessageView.OpenLinks)
    def _open_links(self, event: MessageView.OpenLinks) -> None:
        from localrun_tui.screens.chat.links import open_link

        self.run_guarded(open_link(self.app, event.view.links))

    @on(Transcript.WantsEarlier)
    def _show_earlier(self) -> None:
        self.run_guarded(self.transcript.show_earlier())

    # ---- the list of chats

    @on(HistoryList.Search)
    def _search(self, event: HistoryList.Search) -> None:
        self.run_guarded(self.history.show(event.words))

    @on(HistoryList.Open)
    def _open_chat(self, event: HistoryList.Open) -> None:
        if self.has_class("-narrow"):
            self.show_panel(self.query_one(HistoryList), False)
        self.set_focus(self.composer.editor)
        self.run_guarded(self.session.open_chat(event.chat_id, event.message_id))

    @on(ChatOptions.Rename)
    def _rename_chat(self, event: ChatOptions.Rename) -> None:
        self.run_guarded(self._rename(event.chat_id))

    @on(ChatOptions.Export)
    def _export_chat(self, event: ChatOptions.Export) -> None:
        self.run_guarded(self.history.export(event.chat_id))

    @on(ChatOptions.Delete)
    def _delete_chat(self, event: ChatOptions.Delete) -> None:
        self.run_guarded(self._delete(event.chat_id))

    async def _rename(self, chat_id: str) -> None:
        await self.history.rename(chat_id)
        await self.show_path()  # the first line has the title

    async def _delete(self, chat_id: str) -> None:
        deleted = await self.history.delete(chat_id)
        if deleted and self.session.chat is not None and self.session.chat.id == chat_id:
            await self.session.new_chat()

    # ---- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            return not self.composer.edited and (self.session.answering or self.session.model.loading)
        if action == "back":
            covered = self.has_class("-narrow", "-panel")
            return not isinstance(self.focused, Editor) or covered or bool(self.composer.edited)
        return True

    def action_stop(self) -> None:
        """End the answer, or the load."""
        if self.session.answering:
            self.run_guarded(self.session.stop())
        else:
            self.session.model.give_up()

    def action_back(self) -> None:
        """Leave what is open; else go back to typing."""
        if self.composer.edited:
            self.composer.edit(None)
            self.run_guarded(self._reword(None))
        for panel in (self.query_one(HistoryList), self.query_one(Inspector)):
            if panel.has_focus_within:
                self.show_panel(panel, False)
        self._show_messages()
        self.set_focus(self.composer.editor)

    def action_new_chat(self) -> None:
        self.run_guarded(self.session.new_chat())
        self.set_focus(self.composer.editor)

    def action_history(self) -> None:
        """Open the list and go there; from there, close it."""
        panel = self.query_one(HistoryList)
        if panel.display and panel.has_focus_within:
            self.show_panel(panel, False)
            self.set_focus(self.composer.editor)
            return
        self.show_panel(panel, True)
        self.set_focus(panel.options)
        self.run_guarded(self.history.show())

    def action_focus_search(self) -> None:
        self.set_focus(self.query_one("#search"))

    def action_focus_chats(self) -> None:
        self.set_focus(self.query_one(HistoryList).options)

    def action_inspector(self) -> None:
        panel = self.query_one(Inspector)
        if panel.has_focus_within:
            self.set_focus(self.composer.editor)
        self.show_panel(panel, not panel.display)

    def action_scroll(self, pages: int) -> None:
        inspector = self.query_one(Inspector)
        pages_of = inspector if self.has_class("-narrow") and inspector.display else self.transcript
        pages_of.scroll_relative(y=pages * max(pages_of.size.height - 2, 1), animate=False)

    def action_regenerate(self) -> None:
        if self.session.chat is not None and self.session.chat.tree.head is not None:
            self.run_guarded(self.session.regenerate(self.session.chat.tree.head))

    def action_attach(self) -> None:
        self.run_guarded(self._attach_file())

    async def _attach_file(self) -> None:
        from localrun_tui.screens.dialogs.attach_screen import AttachScreen

        attachment = await self.app.push_screen_wait(AttachScreen(Path.cwd()))
        if attachment is not None:
            self.composer.attach(attachment)

    def action_chat_settings(self) -> None:
        self.run_guarded(self._chat_settings())

    async def _chat_settings(self) -> None:
        from localrun_tui.screens.chat.chat_settings import ChatSettings, ChatSettingsScreen

        session = self.session
        chat = session.chat or await session.new_chat()
        before = ChatSettings(chat.system, chat.preset, chat.policy, session.think)
        after = await self.app.push_screen_wait(ChatSettingsScreen(before))
        if after is not None and after != before:
            session.think = after.think
            await session.run_on_store_thread(
                lambda: chat.set(system=after.system, preset=after.preset, policy=after.policy)
            )

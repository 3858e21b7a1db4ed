"""The composer: the editor, a menu of commands and files above it, and attached files as chips."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message as TextualMessage
from textual.widgets import OptionList, TextArea

from localrun.base.content import Attachment, Content, TextPart, attachments_in, typed_text
from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.sanitize import clean
from localrun.chat.commands import command_in, is_command, unescaped
from localrun.chat.files import FoundFile, read_files, read_found
from localrun.chat.images import ImageShelf
from localrun.chat.left_out import TooLongError
from localrun.chat.named_files import names_files, read_named
from localrun_tui.keys_in_order import keys_wait_for_dialog
from localrun_tui.screens.chat.attached_files import AttachedFiles
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.screens.chat.menu_filler import MenuFiller
from localrun_tui.screens.chat.suggestions import SuggestionMenu
from localrun_tui.state.draft import together
from localrun_tui.state.external_editor import write_outside
from localrun_tui.state.recall import Recall
from localrun_tui.widgets.toast import toast

WAITING = "waiting"  # in place of the id of a message: it is a waiting one


class Composer(Vertical):
    """The editor, and the files attached to the next message."""

    @dataclass
    class Submitted(TextualMessage):
        """A message to send, with its files; `edited`: the message that it replaces, if any."""

        content: Content
        edited: str | None

    @dataclass
    class Command(TextualMessage):
        """A command and its argument."""

        name: str
        arguments: str

    @dataclass
    class Refused(TextualMessage):
        """The typed text cannot be sent, or a file not be attached, with the reason."""

        error: LocalrunError

    class ToEnd(TextualMessage):
        """The user wants to see the newest text."""

    class Drafted(TextualMessage):
        """The draft has changed."""

    class LeaveUp(TextualMessage):
        """The user wants to go up to the messages."""

    def __init__(self, images: Callable[[], Awaitable[ImageShelf]]) -> None:
        """`images` are kept there when they are attached."""
        super().__init__(id="composer")
        self.editor = Editor(self)
        self.menu = SuggestionMenu()
        self.attached = AttachedFiles(images)
        self._images = images
        self.earlier: Callable[[], list[Content]] = list  # what was sent before, oldest first
        self.edited: str | None = None  # the message that is being edited
        self._edits_answer = False
        self._recall = Recall()
        self.offers = MenuFiller(self, self.editor, self.menu, lambda: self.edited is not None)
        self._draft: Content = ()

    def compose(self) -> ComposeResult:
        yield self.menu
        yield self.attached
        yield self.editor

    @property
    def attachments(self) -> list[Attachment]:
        return self.attached.files

    async def choose_file(self) -> None:
        """Let the user choose a file to attach. Waits for the user, so run it as a worker."""
        from localrun_tui.screens.dialogs.attach_screen import AttachScreen

        found = await self.app.push_screen_wait(AttachScreen(Path.cwd(), await self._images()))
        if isinstance(found, TooLongError):
            self.post_message(self.Refused(found))
        elif found is not None:
            self.attached.take(found)

    def edit(self, message_id: str | None, content: Content = (), role: str = "user") -> None:
        """Edit a message; None ends that. The draft comes back afterwards."""
        if message_id is not None and self.edited is None:
            self._draft = self._content(self.editor.text)
        elif message_id is None and self.edited is None:
            return
        self.edited, self._edits_answer = message_id, role == "assistant"
        self.set_class(message_id is not None, "editing")
        does = "keeps it as another version" if role == "assistant" else "sends it as a new branch"
        does = "changes it where it waits" if message_id == WAITING else does
        self.border_title = f"Editing: Enter {does}, Esc leaves it" if message_id else None
        self._show(self._draft if message_id is None else content)
        self.screen.set_focus(self.editor)
        self.screen.refresh_bindings()

    @property
    def message(self) -> Content:
        """The message that would be sent, with its files; nothing for a command."""
        text = self.editor.text.strip()
        typed = "" if is_command(text) and self.edited is None else unescaped(text)
        return self._content(typed) if typed or self.attachments else ()

    @property
    def unsent(self) -> Content:
        """The draft with its files, including one hidden by an edit."""
        written = self._content(self.editor.text)
        return together(self._draft, written) if self.edited is not None else written

    def continue_chat(self, draft: Content) -> None:
        """Restore a draft in front of the text typed since."""
        self._show(together(draft, self._content(self.editor.text)))

    # ---- suggestions

    @property
    def has_menu(self) -> bool:
        return self.menu.is_open

    def choose(self, step: int) -> None:
        self.menu.move(step)

    def close_menu(self) -> None:
        self.menu.show([])

    @on(AttachedFiles.Changed)
    @on(TextArea.Changed)
    def _tell_of_draft(self) -> None:
        if self.edited is None and not self.editor.text and not self.attachments:
            self.border_title = None  # what it said is of the draft before
        self.post_message(self.Drafted())

    @on(TextArea.Changed)
    def _suggest(self) -> None:
        self.offers.fill()

    def complete(self) -> None:
        """Write what is highlighted, as in a shell, and run nothing; where it is written already, on to the next one.
        Files are attached."""
        chosen = self.menu.chosen
        if chosen is None or chosen.is_last:
            self.take()
        elif chosen.is_written(self.editor.text):
            self.menu.move(1)
        elif chosen.leads_to:
            self.editor.take_back(chosen.replaces)
            self.editor.insert(chosen.leads_to)
        else:
            self.write(chosen.typed)

    def take(self) -> None:
        """Run the highlighted command, or write it where it takes an argument."""
        chosen = self.menu.chosen
        self.menu.show([])
        if chosen is None:
            self.submit()
        elif chosen.files:
            self.editor.take_back(chosen.replaces)
            self.run_worker(self._attach_files(chosen.files), group="attach")
        elif not chosen.ends:
            self.write(chosen.typed)
        elif chosen.value:
            self._run(chosen.value, chosen.argument)

    @on(OptionList.OptionSelected)
    def _take_clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.take()

    async def _attach_files(self, files: tuple[FoundFile, ...]) -> None:
        try:
            await self.attached.read(partial(read_found, files))
        except LocalrunError as error:
            self.post_message(self.Refused(error))

    # ---- writing

    def recall(self, back: int) -> bool:
        """Show an earlier prompt in the place of an empty draft, or of another one that was recalled."""
        typed = self._content(self.editor.text)
        content = self._recall.step(back, typed, self.earlier()) if self.edited is None else None
        if content is None:
            return False
        self._show(content)
        return True

    def to_end(self) -> None:
        self.post_message(self.ToEnd())

    def edit_outside(self) -> None:
        """Write the message in $EDITOR; the app waits, while an answer continues."""
        try:
            self.write(write_outside(self.app, self.editor.text))
        except LocalrunError as error:
            self.post_message(self.Refused(error))

    def _content(self, typed: str) -> Content:
        """The files and the text as one message."""
        return (*self.attachments, TextPart(typed))

    def _show(self, content: Content) -> None:
        """Put a message into the editor and its files beside it."""
        self.attached.replace(attachments_in(content))
        self.write(clean(typed_text(content)))

    def write(self, text: str) -> None:
        """Replace the text of the editor."""
        self.editor.text = text
        self.editor.move_cursor(self.editor.document.end)

    def submit(self) -> None:
        text = self.editor.text.strip()
        if not text and not self.attachments:
            return
        if self.edited is None:
            try:
                found = command_in(text, "app")
            except LocalrunError as error:
                self.post_message(self.Refused(error))
                return
            if found is not None:
                self._run(found[0].name, found[1])
                return
        content, edited = self._content(unescaped(text)), self.edited
        with_files = not self._edits_answer and names_files(text)
        if edited is not None:
            self.edit(None)
        else:
            self.editor.text = ""
            self.attached.replace([])
        if with_files:
            keys_wait_for_dialog(self.run_worker(self._submit_with_named(content, edited)), self.app)
        else:
            self.post_message(self.Submitted(content, edited))

    async def _submit_with_named(self, content: Content, edited: str | None) -> None:
        """Submit a message with the files that it names after an @. One that is too long has to be shortened first, and
        the message is back in the editor."""
        try:
            read = partial(read_files, here=Path.cwd(), shelf=await self._images())
            found = await asyncio.to_thread(read_named, typed_text(content), read)
            if too_long := next((error for _, error in found.refused if isinstance(error, TooLongError)), None):
                raise too_long
        except LocalrunError as error:
            if edited is not None:
                self.edit(edited, content)
            else:
                self.continue_chat(content)
            self.post_message(self.Refused(error))
            return
        files = [file for one in found.attached for file in one.files]
        whole = (*dict.fromkeys([*attachments_in(content), *files]), TextPart(found.text))
        self.post_message(self.Submitted(whole, edited))
        if found.words:
            toast(self, found.words, severity="warning")

    def _run(self, name: str, arguments: str) -> None:
        self.editor.text = ""
        self.close_menu()
        self.post_message(self.Command(name, arguments))

    def leave(self) -> None:
        self.post_message(self.LeaveUp())

"""Where the user types: Enter sends, Ctrl+J begins a new line; files wait above it as chips."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message as TextualMessage
from textual.widgets import Static, TextArea

from localrun.base.errors import LocalrunError
from localrun.base.sanitize import clean
from localrun.chat.attachments import Attachment, join, split
from localrun.chat.commands import command_in, unescaped
from localrun_tui.screens.chat.suggestions import SuggestionMenu, suggested_commands
from localrun_tui.widgets.fields import TextField, pasted

WAITING = "waiting"  # in place of a message's id: one that waits
_LONG_PASTE = 4000  # characters; more becomes a chip instead of flooding the line


class Editor(TextField):
    """A text area in which Enter sends; it does with its composer what keys and pastes mean, at once and in order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,tab", "take", show=False, id="composer.take"),
        Binding("up", "choose(-1)", show=False, id="composer.choose-up"),
        Binding("down", "choose(1)", show=False, id="composer.choose-down"),
        Binding("escape", "close", show=False, id="composer.close"),
        Binding("enter", "send", "Send", id="composer.send"),
        Binding("up", "leave", "Messages", id="composer.leave", key_display="↑"),
        Binding("up", "cursor_up", show=False, id="composer.up"),
        Binding("ctrl+j,shift+enter,alt+enter", "new_line", "New line", show=False, id="composer.new-line"),
        Binding("ctrl+u", "clear", "Clear", show=False, id="composer.clear"),
        Binding("ctrl+backspace,alt+backspace", "detach", "Detach", show=False, id="composer.detach"),
        Binding("ctrl+backspace,alt+backspace", "delete_word_left", show=False, id="composer.delete-word"),
    ]

    below_messages = False  # whether there is anything to go up to

    def __init__(self, composer: "Composer") -> None:
        super().__init__(
            placeholder="Ask anything. Enter sends. / for commands, @ for files.",
            id="editor",
            show_line_numbers=False,
            compact=True,
        )
        self.composer = composer

    def action_send(self) -> None:
        self.composer.submit()

    def action_take(self) -> None:
        self.composer.take()

    def action_choose(self, step: int) -> None:
        self.composer.menu.move(step)

    def action_close(self) -> None:
        self.composer.menu.show([])

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_clear(self) -> None:
        self.text = ""

    def action_detach(self) -> None:
        self.composer.detach()

    def action_leave(self) -> None:
        self.composer.leave()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("take", "choose", "close"):
            return self.composer.menu.is_open
        if action == "leave":
            return self.below_messages and self.wrapped_document.location_to_offset(self.cursor_location).y == 0
        if action == "detach":  # else the key takes a word back
            return bool(self.composer.attachments)
        return super().check_action(action, parameters)

    async def _on_paste(self, event: events.Paste) -> None:
        if len(event.text) > _LONG_PASTE:
            event.prevent_default()
            event.stop()
            self.composer.attach_paste(pasted(event.text))


class Composer(Vertical):
    """The editor, and the files that go along with the next message."""

    @dataclass
    class Submitted(TextualMessage):
        """A message to send, files included; `edited` is the one it takes the place of, if any."""

        text: str
        edited: str | None

    @dataclass
    class Command(TextualMessage):
        """A command, and what was typed behind it."""

        name: str
        arguments: str

    @dataclass
    class Refused(TextualMessage):
        """What was typed cannot be sent as it is."""

        error: LocalrunError

    class LeaveUp(TextualMessage):
        """The user wants to go up to the messages."""

    def __init__(self) -> None:
        super().__init__(id="composer")
        self.editor = Editor(self)
        self.menu = SuggestionMenu()
        self.attachments: list[Attachment] = []
        self.edited: str | None = None  # the message that is worded anew
        self._draft: tuple[str, list[Attachment]] = ("", [])

    def compose(self) -> ComposeResult:
        yield self.menu
        yield Static(id="chips", markup=False)
        yield self.editor

    async def choose_file(self) -> None:
        """Let the user choose a file that goes along. Waits for that, so run it as a worker."""
        from localrun_tui.screens.dialogs.attach_screen import AttachScreen

        attachment = await self.app.push_screen_wait(AttachScreen(Path.cwd()))
        if attachment is not None:
            self.attach(attachment)

    def attach(self, attachment: Attachment) -> None:
        """Let a file go along with the next message."""
        self.attachments.append(attachment)
        self._show_chips()

    def attach_paste(self, text: str) -> None:
        self.attach(Attachment(f"pasted text {len(self.attachments) + 1}", text))

    def detach(self) -> None:
        """Take the last file back."""
        if self.attachments:
            self.attachments.pop()
            self._show_chips()

    def edit(self, message_id: str | None, message: str = "") -> None:
        """Word a message anew; None leaves that. What was being typed comes back afterwards."""
        if message_id is not None and self.edited is None:
            self._draft = self.editor.text, self.attachments
        elif message_id is None and self.edited is None:
            return
        self.edited = message_id
        self.set_class(message_id is not None, "editing")
        does = "changes it where it waits" if message_id == WAITING else "sends it as a new branch"
        self.border_title = f"Editing: Enter {does}, Esc leaves it" if message_id else None
        if message_id is None:
            text, self.attachments = self._draft
        else:
            self.attachments, text = split(message)
        self._show_chips()
        self.editor.text = clean(text)
        self.editor.move_cursor(self.editor.document.end)
        self.screen.set_focus(self.editor)

    @on(TextArea.Changed)
    def _suggest(self) -> None:
        self.menu.show(suggested_commands(self.editor.text) if self.edited is None else [])

    def take(self) -> None:
        """Do what is highlighted in the menu, or write it down where more has to be typed behind it."""
        self._suggest()
        chosen = self.menu.chosen
        if chosen is None or chosen.ends:
            self.submit() if chosen is None else self._run(chosen.value, "")
        else:
            self.write(f"{chosen.value} ")

    def write(self, text: str) -> None:
        """Put a text into the editor in place of what is there."""
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
        message, edited = join(self.attachments, unescaped(text)), self.edited
        if edited is not None:
            self.edit(None)
        else:
            self.attachments, self.editor.text = [], ""
            self._show_chips()
        self.post_message(self.Submitted(message, edited))

    def _run(self, name: str, arguments: str) -> None:
        self.editor.text = ""
        self.menu.show([])
        self.post_message(self.Command(name, arguments))

    def leave(self) -> None:
        self.post_message(self.LeaveUp())

    def _show_chips(self) -> None:
        chips = self.query_one("#chips", Static)
        names = "  ".join(f"▤ {attachment.chip}" for attachment in self.attachments)
        chips.update(f"{names}   (Alt+Backspace takes the last one back)" if names else "")
        chips.display = bool(names)

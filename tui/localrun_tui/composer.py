"""Where the user types: Enter sends, Ctrl+J begins a new line; files wait above it as chips."""

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message as TextualMessage
from textual.widgets import Static, TextArea

from localrun.base.sanitize import clean

from .attachments import Attachment, join, split

_LONG_PASTE = 4000  # characters; more becomes a chip instead of flooding the line


class Editor(TextArea):
    """A text area in which Enter sends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", id="composer.send", priority=True),
        Binding("up", "leave", "Messages", id="composer.leave", key_display="↑"),
        Binding("up", "cursor_up", show=False, id="composer.up"),
        Binding("ctrl+j,shift+enter,alt+enter", "new_line", "New line", show=False, id="composer.new-line"),
        Binding("ctrl+u", "clear", "Clear", show=False, id="composer.clear"),
    ]

    below_messages = False  # whether there is anything to go up to

    class Send(TextualMessage):
        """Enter was pressed."""

    class Leave(TextualMessage):
        """Up was pressed in the first line: to the messages."""

    class LongPaste(TextualMessage):
        """Much was pasted."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def action_send(self) -> None:
        self.post_message(self.Send())

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_clear(self) -> None:
        self.text = ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "leave":
            return self.below_messages and self.wrapped_document.location_to_offset(self.cursor_location).y == 0
        return super().check_action(action, parameters)

    def action_leave(self) -> None:
        self.post_message(self.Leave())

    async def _on_paste(self, event: events.Paste) -> None:
        if len(event.text) > _LONG_PASTE:
            event.prevent_default()
            event.stop()
            self.post_message(self.LongPaste(event.text))
        else:
            event.text = clean(event.text)
            await super()._on_paste(event)


class Composer(Vertical):
    """The editor, and the files that go along with the next message."""

    class Submitted(TextualMessage):
        """A message to send, files included; `edited` is the one it takes the place of, if any."""

        def __init__(self, text: str, edited: str | None) -> None:
            super().__init__()
            self.text = text
            self.edited = edited

    class LeaveUp(TextualMessage):
        """The user wants to go up to the messages."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+backspace,alt+backspace", "detach", "Detach", show=False, id="composer.detach"),
    ]

    def __init__(self) -> None:
        super().__init__(id="composer")
        self.attachments: list[Attachment] = []
        self.edited: str | None = None  # the message that is worded anew
        self._draft: tuple[str, list[Attachment]] = ("", [])

    def compose(self) -> ComposeResult:
        yield Static(id="chips", markup=False)
        yield Editor(placeholder="Ask anything. Enter sends.", id="editor", show_line_numbers=False, compact=True)

    @property
    def editor(self) -> Editor:
        return self.query_one(Editor)

    def attach(self, attachment: Attachment) -> None:
        """Let a file go along with the next message."""
        self.attachments.append(attachment)
        self._show_chips()

    def action_detach(self) -> None:
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
        self.border_title = "Editing: Enter sends it as a new branch, Esc leaves it" if message_id else None
        if message_id is None:
            text, self.attachments = self._draft
        else:
            self.attachments, text = split(message)
        self._show_chips()
        self.editor.text = clean(text)
        self.editor.move_cursor(self.editor.document.end)
        self.screen.set_focus(self.editor)

    def bring_back(self, text: str) -> None:
        """What was sent and never became a message, to be sent once more; what is being typed goes before it."""
        if text and not self.editor.text and not self.attachments:
            self.attachments, text = split(text)
            self._show_chips()
            self.editor.text = clean(text)
            self.editor.move_cursor(self.editor.document.end)

    @on(Editor.Send)
    def submit(self) -> None:
        text = self.editor.text.strip()
        if not text and not self.attachments:
            return
        message, edited = join(self.attachments, text), self.edited
        if edited is not None:
            self.edit(None)
        else:
            self.attachments, self.editor.text = [], ""
            self._show_chips()
        self.post_message(self.Submitted(message, edited))

    @on(Editor.Leave)
    def leave(self) -> None:
        self.post_message(self.LeaveUp())

    @on(Editor.LongPaste)
    def attach_paste(self, event: Editor.LongPaste) -> None:
        self.attach(Attachment(f"pasted text {len(self.attachments) + 1}", clean(event.text)))

    def _show_chips(self) -> None:
        chips = self.query_one("#chips", Static)
        names = "  ".join(f"▤ {attachment.chip}" for attachment in self.attachments)
        chips.update(f"{names}   (Alt+Backspace takes the last one back)" if names else "")
        chips.display = bool(names)

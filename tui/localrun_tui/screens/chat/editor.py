"""The text area of the composer: Enter sends; keys and pastes act at once and in order."""

import asyncio
from typing import ClassVar, Protocol

from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType

from localrun_tui.screens.chat.attached_files import AttachedFiles
from localrun_tui.state.files import dropped_paths
from localrun_tui.widgets.fields import TextField, pasted

_NEW_LINE_TOO = "New line, where the terminal distinguishes it from Enter"
_DETACH = "Detach, before the text"
_EMPTY = "Ask anything. Enter sends. / for commands, @ for files."
_EMPTY_NARROW = "Ask anything. / commands, @ files."
_LONG_PASTE = 4000  # characters; more becomes a chip instead of flooding the line


class Offers(Protocol):
    """The part of what is offered for the text that the editor uses."""

    @property
    def is_behind(self) -> bool: ...
    async def catch_up(self) -> None: ...
    def fill_dropped(self, text: str) -> None: ...


class Writer(Protocol):
    """The part of the composer that the editor uses."""

    @property
    def has_menu(self) -> bool: ...
    @property
    def offers(self) -> Offers: ...
    @property
    def attached(self) -> AttachedFiles: ...
    def submit(self) -> None: ...
    def take(self) -> None: ...
    def complete(self) -> None: ...
    def choose(self, step: int) -> None: ...
    def close_menu(self) -> None: ...
    def recall(self, back: int) -> bool: ...
    def edit_outside(self) -> None: ...
    def to_end(self) -> None: ...
    def leave(self) -> None: ...


class Editor(TextField):
    """`below_messages`: whether there is anything to go up to."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", show=False, id="composer.take"),
        Binding("tab", "complete", show=False, id="composer.complete"),
        Binding("up", "choose(-1)", show=False, id="composer.choose-up"),
        Binding("down", "choose(1)", show=False, id="composer.choose-down"),
        Binding("escape", "close", show=False, id="composer.close"),
        Binding("enter", "send", "Send", id="composer.send"),
        Binding("up", "recall(1)", "Earlier prompts, from an empty line", show=False, id="composer.recall"),
        Binding("down", "recall(-1)", show=False, id="composer.recall-newer"),
        Binding("ctrl+up,alt+up", "leave", "Messages", id="composer.leave", key_display="^↑"),
        Binding("up", "leave", show=False, id="composer.leave-up"),
        Binding("up", "cursor_up", show=False, id="composer.up"),
        Binding("ctrl+j,alt+enter", "new_line", "New line", show=False, id="composer.new-line"),
        Binding("shift+enter", "new_line", _NEW_LINE_TOO, show=False, id="composer.new-line-too"),
        Binding("ctrl+end", "to_end", "To the newest text", show=False, id="composer.to-end"),
        Binding("f4", "edit_outside", "Write in $EDITOR", show=False, id="composer.outside"),
        Binding("ctrl+u", "clear", "Clear", show=False, id="composer.clear"),
        Binding("f9", "next_size", "Size of the last image", show=False, id="composer.image-size"),
        Binding("ctrl+backspace,alt+backspace,ctrl+w", "detach", _DETACH, show=False, id="composer.detach"),
        Binding("ctrl+backspace,alt+backspace,ctrl+w", "delete_word_left", show=False, id="composer.delete-word"),
    ]

    below_messages = False

    def __init__(self, writer: Writer) -> None:
        super().__init__(placeholder=_EMPTY, id="editor", show_line_numbers=False, compact=True)
        self._writer = writer

    def on_resize(self, event: events.Resize) -> None:
        self.placeholder = _EMPTY if event.size.width > len(_EMPTY) else _EMPTY_NARROW

    @property
    def before_cursor(self) -> str:
        """The text of the line up to the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    @property
    def text_before_cursor(self) -> str:
        """All text up to the cursor."""
        return self.get_text_range((0, 0), self.cursor_location)

    def take_back(self, typed: str) -> None:
        """Remove the text typed last, if it is still before the cursor."""
        before = self.text_before_cursor
        before = before if before.endswith(typed) else before.rstrip()  # a line end that came with a paste
        if before.endswith(typed):
            begin = before[: len(before) - len(typed)]
            self.delete((begin.count("\n"), len(begin) - begin.rfind("\n") - 1), self.cursor_location)

    def action_send(self) -> None:
        self._writer.submit()

    async def action_take(self) -> None:
        await self._catch_up()
        self._writer.take()

    async def action_complete(self) -> None:
        await self._catch_up()
        self._writer.complete()

    async def _catch_up(self) -> None:
        """Wait for the menu of the text; where it has none, the key means what it does without one."""
        await self._writer.offers.catch_up()
        if not self._writer.has_menu:
            raise SkipAction

    def action_choose(self, step: int) -> None:
        self._writer.choose(step)

    def action_close(self) -> None:
        self._writer.close_menu()

    def action_recall(self, back: int) -> None:
        if not self._writer.recall(back):
            raise SkipAction

    def action_to_end(self) -> None:
        self._writer.to_end()

    def action_edit_outside(self) -> None:
        self._writer.edit_outside()

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_clear(self) -> None:
        self.text = ""

    def action_detach(self) -> None:
        self._writer.attached.take_back()

    def action_next_size(self) -> None:
        self._writer.attached.take_next_size()

    def action_leave(self) -> None:
        self._writer.leave()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("take", "complete"):
            return self._writer.has_menu or self._writer.offers.is_behind
        if action in ("choose", "close"):
            return self._writer.has_menu
        if action == "leave":
            return self.below_messages and self.wrapped_document.location_to_offset(self.cursor_location).y == 0
        if action == "detach":  # elsewhere the key takes a word back
            return bool(self._writer.attached.files) and self.cursor_location == (0, 0)
        if action == "next_size":
            return bool(self._writer.attached.images)
        if action == "undo":  # else the key suspends the app, as elsewhere
            return bool(self.history.undo_stack)
        return super().check_action(action, parameters)

    async def _on_paste(self, event: events.Paste) -> None:
        if len(event.text) > _LONG_PASTE and not await asyncio.to_thread(dropped_paths, pasted(event.text)):
            event.prevent_default()
            event.stop()
            self._writer.attached.add_paste(pasted(event.text))
        else:
            self._writer.offers.fill_dropped(pasted(event.text))

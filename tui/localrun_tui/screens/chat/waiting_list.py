"""Messages sent during an answer, which wait and can be changed or dropped."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message as TextualMessage
from textual.widgets.option_list import Option

from localrun.base.content import Content as MessageContent
from localrun.base.content import attachments_in, typed_text
from localrun.base.dataclass import dataclass
from localrun_tui.screens.chat.chips import chip_of
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.marked_options import MarkedOptions

_SHOWN = 120  # characters of each


class WaitingList(MarkedOptions):
    """Below the messages; hidden while empty."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send now", id="waiting.send"),
        Binding("e", "edit", "Edit", id="waiting.edit"),
        Binding("delete,backspace", "drop", "Take back", id="waiting.drop", key_display="del"),
        Binding("up,k", "go(-1)", "Previous", show=False, id="waiting.previous"),
        Binding("down,j", "go(1)", "Next", show=False, id="waiting.next"),
    ]

    @dataclass
    class Send(TextualMessage):
        """Send message number `index` now."""

        index: int

    @dataclass
    class Drop(TextualMessage):
        """Take message number `index` back."""

        index: int

    @dataclass
    class Leave(TextualMessage):
        """Up to the messages (-1), or down to the editor (1)."""

        step: int

    def __init__(self, edit: Callable[[int], None]) -> None:
        """`edit` puts a message into the editor at once: letters may follow."""
        super().__init__(id="waiting", compact=True)
        self._edit = edit
        self.held = False
        self._contents: tuple[MessageContent, ...] = ()

    def show(self, contents: Sequence[MessageContent], held: bool) -> None:
        """`held`: they are not sent after the answer, but when the user says so."""
        if (tuple(contents), held) == (self._contents, self.held):
            return
        self._contents, self.held = tuple(contents), held
        at = self.highlighted or 0
        self.clear_options()
        self.add_options([Option(self._row(content)) for content in contents])
        self.highlighted = min(at, len(contents) - 1) if contents else None
        self.border_title = "Held" if held else "Waits for the answer"
        self.display = bool(contents)
        self.refresh_bindings()

    def focus_last(self) -> None:
        self.highlighted = self.option_count - 1
        self.screen.set_focus(self)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.held if action == "send" else True

    def action_send(self) -> None:
        if self.highlighted is not None:
            self.post_message(self.Send(self.highlighted))

    def action_edit(self) -> None:
        if self.highlighted is not None:
            self._edit(self.highlighted)

    def action_drop(self) -> None:
        if self.highlighted is not None:
            self.post_message(self.Drop(self.highlighted))

    def action_go(self, step: int) -> None:
        at = (self.highlighted or 0) + step
        if 0 <= at < len(self._contents):
            self.highlighted = at
        else:
            self.post_message(self.Leave(step))

    def _row(self, content: MessageContent) -> Content:
        files = "".join(f"{chip_of(one)}  " for one in attachments_in(content))
        short = " ".join(typed_text(content).split())
        return say(files + (short if len(short) <= _SHOWN else f"{short[:_SHOWN]}…")).truncate(
            max(self.app.size.width - 8, 20), ellipsis=True
        )

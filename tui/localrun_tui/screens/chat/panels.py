"""The chat in the middle, the panels beside it, and the focus among them."""

from textual import events, on
from textual.containers import Horizontal
from textual.message import Message as TextualMessage
from textual.widget import Widget

from localrun_tui.screens.chat.chat_pane import ChatPane
from localrun_tui.screens.chat.composer import Composer
from localrun_tui.screens.chat.history_list import HistoryList
from localrun_tui.screens.chat.inspector import Inspector
from localrun_tui.screens.chat.transcript import Transcript
from localrun_tui.screens.chat.waiting_list import WaitingList

_WIDE = 100  # cells from which panels are beside the chat
_WIDEST = 150  # from which there is room for both, and they open by themselves


class Panels(Horizontal):
    """Where there is little room the list takes the place of the messages, or the inspector lies below them."""

    class Changed(TextualMessage):
        """A panel was opened or closed."""

    def __init__(self, history: HistoryList, pane: ChatPane, inspector: Inspector) -> None:
        super().__init__(history, pane, inspector)
        self._history, self._pane, self._inspector = history, pane, inspector
        self._panels = (history, inspector)
        self._gave_way: set[Widget] = set()  # panels that come back where there is room again
        self._chosen: set[Widget] = set()  # panels that the user has opened or closed: they stay so

    @property
    def covering(self) -> bool:
        """Whether the list is where the messages would be."""
        return self.has_class("-panel") and self.has_class("-narrow")

    # ---- opening and closing

    def begin(self, width: int) -> None:
        """Know the room before anything in here has styles: at the first resize all would be styled again."""
        self.set_class(width < _WIDE, "-narrow")

    def show(self, panel: HistoryList | Inspector, shown: bool) -> None:
        """Open a panel, or close it."""
        self._gave_way.discard(panel)
        narrow = self.has_class("-narrow")
        if shown and narrow:
            for each in self._panels:
                each.display = False
        if shown or not narrow:
            self._chosen.add(panel)
        else:
            self._chosen.discard(panel)  # it covered the chat
        panel.display = shown
        self._tell()

    def on_resize(self, event: events.Resize) -> None:
        """Where the room becomes narrow one panel stays: the list if it has the focus, else the inspector."""
        narrow, moved = event.size.width < _WIDE, self._fill(event.size.width >= _WIDEST)
        if narrow == self.has_class("-narrow"):
            if moved:
                self._tell()
            return
        if narrow:
            stays = self._history if self._history.has_focus_within else self._inspector
            self._gave_way = {panel for panel in self._panels if panel.display and panel is not stays}
        for panel in self._gave_way:
            panel.display = not narrow
        self.set_class(narrow, "-narrow")
        self._tell()

    def _fill(self, has_room: bool) -> bool:
        """Open the panels that the user has not touched where there is room for all, and close them where there is
        none. Gives whether any moved."""
        moved = [panel for panel in self._panels if panel not in self._chosen and panel.display != has_room]
        for panel in moved:
            if panel.has_focus_within:
                self._focus(self._pane.composer.editor)
            panel.display = has_room
        return bool(moved)

    def _tell(self) -> None:
        list_shown, inspector_shown = (each.display for each in self._panels)
        self.set_class(list_shown, "-panel")
        self.set_class(inspector_shown and not list_shown, "-below")
        self.post_message(self.Changed())

    def go_to_history(self) -> None:
        """Open the list and go there; from there, close it."""
        shown = not self._history.has_focus_within
        self.show(self._history, shown)
        self._focus(self._history.options if shown else self._pane.composer.editor)

    def toggle_inspector(self) -> None:
        """Open it, which leaves the focus where it is, or close it."""
        if self._inspector.has_focus_within:
            self._focus(self._pane.composer.editor)
        self.show(self._inspector, not self._inspector.display)

    @on(Composer.Submitted)
    def uncover(self) -> None:
        """Close what covers the messages."""
        if self.covering:
            for panel in self._panels:
                self.show(panel, False)

    def leave(self) -> None:
        """Close the panel that has the focus, and all that cover the messages, and go back to typing."""
        for panel in self._panels:
            if panel.has_focus_within:
                self.show(panel, False)
        self.uncover()
        self._focus(self._pane.composer.editor)

    # ---- between the editor, what waits above it, and the messages

    @on(Composer.LeaveUp)
    def _go_up(self) -> None:
        if self._pane.waiting.display:
            self._pane.waiting.focus_last()
        else:
            self._to_messages()

    @on(Transcript.LeaveDown)
    def _go_down(self) -> None:
        waiting = self._pane.waiting
        self._focus(waiting if waiting.display else self._pane.composer.editor)

    @on(WaitingList.Leave)
    def _leave_waiting(self, event: WaitingList.Leave) -> None:
        if event.step < 0:
            self._to_messages()
        else:
            self._focus(self._pane.composer.editor)

    def _to_messages(self) -> None:
        if views := self._pane.transcript.views:
            self.uncover()
            self._focus(views[-1])

    def _focus(self, widget: Widget) -> None:
        self.screen.set_focus(widget)

"""The chat in the middle, and the panels that open beside it."""

from textual.containers import Horizontal
from textual.message import Message as TextualMessage
from textual.widget import Widget

from localrun_tui.screens.chat.history_list import HistoryList
from localrun_tui.screens.chat.inspector import Inspector


class Panels(Horizontal):
    """Where the screen is narrow the list takes the place of the messages; the inspector lies below them."""

    class Changed(TextualMessage):
        """A panel was opened or closed."""

    def __init__(self, history: HistoryList, chat: Widget, inspector: Inspector) -> None:
        super().__init__(history, chat, inspector)
        self._panels = (history, inspector)

    @property
    def covering(self) -> bool:
        """Whether the list is where the messages would be."""
        return self.is_attached and self.has_class("-panel") and self.screen.has_class("-narrow")

    def show(self, panel: HistoryList | Inspector, shown: bool) -> None:
        """Open a panel, or close it."""
        if shown and self.screen.has_class("-narrow"):
            for each in self._panels:
                each.display = False
        panel.display = shown
        list_shown, inspector_shown = (each.display for each in self._panels)
        self.set_class(list_shown, "-panel")
        self.set_class(inspector_shown and not list_shown, "-below")
        self.post_message(self.Changed())

    def uncover(self) -> None:
        """Close what covers the messages."""
        if self.covering:
            for panel in self._panels:
                self.show(panel, False)

    def leave(self) -> None:
        """Close the panel that has the focus, and all that cover the messages."""
        for panel in self._panels:
            if panel.has_focus_within:
                self.show(panel, False)
        self.uncover()

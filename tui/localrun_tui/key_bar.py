"""The last line of a screen: the keys that work now."""

from textual.events import Resize
from textual.widgets import Footer

_WIDE = 100  # cells from which on there is room for the palette's key, too


class KeyBar(Footer):
    """A footer that holds all keys of a screen in 80 cells."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)

    def on_resize(self, event: Resize) -> None:
        self.show_command_palette = event.size.width >= _WIDE

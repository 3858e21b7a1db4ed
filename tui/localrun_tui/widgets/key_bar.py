"""The last line of a screen: the keys that work now."""

from textual.app import ComposeResult
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

_WIDE = 100  # cells from which on there is room for the palette's key, too
_LEAST = ("inspector", "app.models", "history", "reload", "quit")  # actions left out first where there is no room


class KeyBar(Footer):
    """A footer that holds the keys of a screen in the cells there are."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)

    def on_resize(self, event: Resize) -> None:
        self.show_command_palette = event.size.width >= _WIDE
        self.refresh(recompose=True)

    def compose(self) -> ComposeResult:
        keys = list(super().compose())
        for action in _LEAST:
            if _cells(keys) > self.app.size.width:
                keys = [key for key in keys if not (isinstance(key, FooterKey) and key.action == action)]
        yield from keys


def _cells(keys: list[Widget]) -> int:
    return sum(len(key.key_display) + len(key.description) + 2 for key in keys if isinstance(key, FooterKey))

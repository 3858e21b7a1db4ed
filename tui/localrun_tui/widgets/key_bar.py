"""The last line of a screen: the keys that work now."""

from typing import Any

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
        self._composed: Any = None  # what its keys were made from

    def on_resize(self, event: Resize) -> None:
        self.show_command_palette = event.size.width >= _WIDE
        self.refresh(recompose=True)

    async def recompose(self) -> None:
        """Only where a key changed: it is asked for whenever the focus moves, several times for a key.

        Not on a screen that is being left: which keys work depends on widgets that may be gone.
        """
        if not (self.is_attached and self.display):
            return
        if self._composed is None or self._composed != self._wanted():
            await super().recompose()

    def compose(self) -> ComposeResult:
        self._composed = self._wanted() if self._bindings_ready else None
        keys = list(super().compose())
        for action in _LEAST:
            if _cells(keys) > self.app.size.width:
                keys = [key for key in keys if not (isinstance(key, FooterKey) and key.action == action)]
        yield from keys

    def _wanted(self) -> Any:
        """All that the keys depend on."""
        palette = self.app.COMMAND_PALETTE_BINDING
        active = self.screen.active_bindings.items()
        shown = [(b.binding, b.enabled, b.tooltip) for key, b in active if b.binding.show or key == palette]
        return shown, self.show_command_palette, self.app.size.width


def _cells(keys: list[Widget]) -> int:
    return sum(len(key.key_display) + len(key.description) + 2 for key in keys if isinstance(key, FooterKey))

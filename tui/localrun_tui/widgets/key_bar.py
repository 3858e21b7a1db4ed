"""The last line of a screen: the keys that work now."""

from typing import NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

_WIDE = 100  # cells from which on there is room for the palette's key, too
_MODELS = ("reveal", "update", "open_path", "storage")
_CHATS = ("act('duplicate')", "act('folder')", "screen.undelete", "act('pin')")
_LEAST = (
    *_CHATS,
    *_MODELS,
    "inspector",
    "app.models",
    "history",
    "reload",
    "quit",
    "downloads",
)  # left out first where there is no room


class ShownKey(NamedTuple):
    """One key of the line, and all that it looks like depends on."""

    binding: Binding
    display: str
    enabled: bool
    tooltip: str
    classes: str = ""

    @property
    def cells(self) -> int:
        return len(self.display) + len(self.binding.description) + 2

    def widget(self) -> FooterKey:
        key, description, action = self.binding.key, self.binding.description, self.binding.action
        classes = f"-compact {self.classes}"  # without -compact it gives that to itself later, and is styled twice
        return FooterKey(key, self.display, description, action, not self.enabled, self.tooltip, classes)


class KeyBar(Footer):
    """A footer that holds the keys of a screen in the cells there are."""

    def __init__(self) -> None:
        super().__init__(compact=True)
        self._composed: list[ShownKey] | None = None

    def on_resize(self) -> None:
        self.refresh(recompose=True)

    async def recompose(self) -> None:
        """Only where a key changed: it is asked for whenever the focus moves, several times for a key.

        Not on a screen that is being left: which keys work depends on widgets that may be gone.
        """
        if not (self._bindings_ready and self.is_attached and self.display):
            return
        keys = self._keys()
        if keys != self._composed:
            self._composed = keys
            await super().recompose()

    def compose(self) -> ComposeResult:
        yield from (key.widget() for key in self._composed or ())

    def _keys(self) -> list[ShownKey]:
        """Keys that work now, one per action, as many as fit; every binding of the screen is checked."""
        active, width = self.screen.active_bindings, self.app.size.width
        by_action: dict[str, ShownKey] = {}
        for _, binding, enabled, tooltip in active.values():
            if binding.show:
                key = ShownKey(binding, self.app.get_key_display(binding), enabled, tooltip)
                by_action.setdefault(binding.action, key)
        if width >= _WIDE and (palette := active.get(self.app.COMMAND_PALETTE_BINDING)):
            binding, display = palette.binding, self.app.get_key_display(palette.binding)
            tooltip = binding.tooltip or binding.description
            by_action[binding.action] = ShownKey(binding, display, palette.enabled, tooltip, "-command-palette")
        last = [action for action in reversed(by_action) if action != "help"]  # it names all the others
        for action in (*_LEAST, *last):
            if sum(key.cells for key in by_action.values()) <= width:
                break
            by_action.pop(action, None)
        return list(by_action.values())

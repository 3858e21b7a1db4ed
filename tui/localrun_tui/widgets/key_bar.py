"""The last line of a screen: the keys that work now."""

from collections.abc import Iterator
from typing import NamedTuple

from textual.binding import Binding
from textual.content import Content
from textual.events import MouseDown, MouseMove
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

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
_EDGE = "▏"  # before the key at the end


class ShownKey(NamedTuple):
    """One key of the line, and all that it looks like depends on."""

    binding: Binding
    display: str
    enabled: bool
    tooltip: str
    at_end: bool = False  # of the line

    @property
    def cells(self) -> int:
        """Cells of the key, what it does, and one beside it."""
        return len(self.display) + len(self.binding.description) + 2

    def content(self, is_hovered: bool) -> Content:
        key = Content.styled(self.display, "bold $footer-key-foreground")
        whole = key + Content.styled(f" {self.binding.description}", "$footer-description-foreground")
        whole = whole if self.enabled else whole.stylize("dim")
        return whole.stylize("on $block-hover-background") if is_hovered else whole


class KeyBar(Widget):
    """The keys of a screen in the cells there are, each of which can be clicked.

    Drawn as one widget: on every screen a widget for each key would be a tenth of all, made again for many keys.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    KeyBar { dock: bottom; height: 1; background: $panel; color: $footer-foreground; text-wrap: nowrap; }
    """
    keys: reactive[tuple[ShownKey, ...]] = reactive(())
    hovered: reactive[ShownKey | None] = reactive(None)

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self.look_again)

    def on_unmount(self) -> None:
        self.screen.bindings_updated_signal.unsubscribe(self)

    def on_resize(self) -> None:
        self.look()

    def look_again(self, screen: Screen[object]) -> None:
        """Follow the bindings of the screen, which change with the focus."""
        if self.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self.look)

    def look(self) -> None:
        """Find out which keys work, unless the screen is being left: that depends on widgets that may be gone."""
        if self.is_attached and self.display:
            self.keys = tuple(self._working_keys())

    def render(self) -> Content:
        line = Content()
        for start, key in self._places():
            edge = Content.styled(_EDGE, "$foreground 20%") if key.at_end else Content()
            line = line.pad_right(max(0, start - line.cell_length - edge.cell_length))
            line += edge + key.content(key == self.hovered)
        return line

    def watch_hovered(self) -> None:
        self.tooltip = None if self.hovered is None else self.hovered.tooltip

    def on_mouse_move(self, event: MouseMove) -> None:
        self.hovered = self.key_at(event.x)

    def on_leave(self) -> None:
        self.hovered = None

    def on_mouse_down(self, event: MouseDown) -> None:
        if (key := self.key_at(event.x)) is None:
            return
        if key.enabled:
            self.app.simulate_key(key.binding.key)
        else:
            self.app.bell()

    def key_at(self, x: int) -> ShownKey | None:
        """The key that is drawn in a cell of the line."""
        return next((key for start, key in self._places() if start <= x < start + key.cells - 1), None)

    def _places(self) -> Iterator[tuple[int, ShownKey]]:
        """The first cell of every key."""
        end = 0
        for key in self.keys:
            start = self.size.width - key.cells if key.at_end else end
            yield start, key
            end = start + key.cells

    def _working_keys(self) -> list[ShownKey]:
        """Keys that work now, one per action, as many as fit; every binding of the screen is checked."""
        active, width = self.screen.active_bindings, self.size.width
        by_action: dict[str, ShownKey] = {}
        for _, binding, enabled, tooltip in active.values():
            if binding.show:
                key = ShownKey(binding, self.app.get_key_display(binding), enabled, tooltip or binding.description)
                by_action.setdefault(binding.action, key)
        if width >= _WIDE and (palette := active.get(self.app.COMMAND_PALETTE_BINDING)):
            binding, display = palette.binding, self.app.get_key_display(palette.binding)
            tooltip = binding.tooltip or binding.description
            by_action[binding.action] = ShownKey(binding, display, palette.enabled, tooltip, at_end=True)
        last = [action for action in reversed(by_action) if action != "help"]  # it names all the others
        for action in (*_LEAST, *last):
            if sum(key.cells for key in by_action.values()) <= width:
                break
            by_action.pop(action, None)
        return list(by_action.values())

"""Keys outside of fields act in the order they were pressed; those of fields do so in `widgets/fields.py`."""

from typing import Any

from textual.app import App
from textual.events import Event, Key
from textual.widgets import Input, TextArea


async def acts_at_once(app: App[Any], event: Event) -> bool:
    """Whether the event is a key that did something outside of fields. Textual asks the widgets first, and what is
    typed meanwhile would not reach the field that the key leads to."""
    if not isinstance(event, Key) or event.is_forwarded or not app.app_focus:
        return False
    if isinstance(app.focused, Input | TextArea):
        return False
    return await app._check_bindings(event.key, priority=True) or await app._check_bindings(event.key)

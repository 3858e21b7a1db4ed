"""The fields one types in: keys act in the order they were pressed, and a paste arrives once, with its lines."""

import re

from textual import events
from textual.actions import SkipAction
from textual.screen import Screen
from textual.widgets import Input, TextArea
from textual.widgets.input import Selection as InputSelection
from textual.widgets.text_area import Selection

from localrun.base.sanitize import clean
from localrun_tui.widgets.words import word_at

_JOINERS = "\u200c\u200d"  # typed in Persian, Indic scripts and emoji; Textual inserts only printable characters


def pasted(text: str) -> str:
    """The text of a paste as a terminal sends it: many send CR where a line ends."""
    return clean(re.sub("\r\n?", "\n", text))


class _InOrder:
    """Textual asks the app what a key means, and letters that were typed after it act before the answer is there. Here
    the keys of a field, and of what it is a part of, its screen included, act at once. What can be typed into the field
    is typed, whatever it means elsewhere: then only the field's own keys act."""

    async def _on_key(self, event: events.Key) -> None:
        assert isinstance(self, (Input, TextArea))
        is_typed = self.check_consume_key(event.key, event.character)
        for node in [self] if is_typed else self.ancestors_with_self:
            for binding in node._bindings.key_to_bindings.get(event.key, ()):
                if await self.app.run_action(binding.action, node):
                    event.stop()
                    event.prevent_default()
                    return
            if isinstance(node, Screen):
                break
        if event.character and event.character in _JOINERS:
            event.stop()
            event.prevent_default()
            self._insert_typed(event.character)

    def _insert_typed(self, text: str) -> None:
        raise NotImplementedError


class LineField(_InOrder, Input):
    """One line. A paste of several becomes one."""

    def _insert_typed(self, text: str) -> None:
        self.insert_text_at_cursor(text)

    def action_copy(self) -> None:
        """A secret stays where it is."""
        if self.password:
            raise SkipAction
        super().action_copy()

    def action_cut(self) -> None:
        if self.password or not self.selected_text:
            raise SkipAction
        super().action_cut()

    def on_click(self, event: events.Click) -> None:
        """Select the word at a double click, else all. The first click has moved the cursor there."""
        if event.chain == 2:
            self.selection = InputSelection(*word_at(self.value, self.cursor_position))
        elif event.chain > 2:
            self.select_all()

    def _on_paste(self, event: events.Paste) -> None:  # Textual goes on to Input's own handler
        event.text = clean(pasted(event.text).strip("\n"), keep_newlines=False)


class TextField(_InOrder, TextArea):
    """Several lines."""

    def _insert_typed(self, text: str) -> None:
        self.insert(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Textual's F6 selects a line, which the next key would replace: pressed for a tool, it may come too soon."""
        return action != "select_line" and super().check_action(action, parameters)

    async def _on_paste(self, event: events.Paste) -> None:  # Textual goes on to TextArea's own handler
        event.text = pasted(event.text)

    def on_click(self, event: events.Click) -> None:
        """Likewise."""
        if event.chain == 2:
            row, column = self.cursor_location
            start, end = word_at(self.document[row], column)
            self.selection = Selection((row, start), (row, end))
        elif event.chain > 2:
            self.select_all()

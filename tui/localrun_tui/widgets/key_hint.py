"""The last line of a dialog, two where it is narrow: its keys, where those of a screen are."""

from textual.widgets import Static

from localrun_tui.widgets.columns import say


class KeyHint(Static):
    """The keys of a dialog, over those of the screen below, which do nothing meanwhile."""

    DEFAULT_CSS = """
    KeyHint {
        dock: bottom; width: 100%; height: auto; max-height: 2; padding: 0 1;
        background: $panel; color: $text-accent;
    }
    """

    def __init__(self, words: str = "") -> None:
        super().__init__(say(words))

    def show(self, words: str) -> None:
        self.update(say(words))

"""The question for a setting that is one of a few words, or the path of a model beside them."""

from collections.abc import Callable
from typing import Any

from textual.screen import Screen

from localrun_tui.screens.dialogs.ask import AskOne, AskText
from localrun_tui.screens.settings.settings_groups import CHOICES
from localrun_tui.screens.settings.settings_rows import SettingRow

_FILE = "FILE"


def ask_for_choice(screen: Screen[Any], row: SettingRow, write: Callable[[str | None], None]) -> None:
    """Call `write` with the choice; None where it stays as it was."""
    words = CHOICES.get(row.key, {})
    rows = [(choice, choice, words.get(choice, "")) for choice in row.setting.choices]
    if row.setting.takes_file:
        rows.append((_FILE, "a file or folder …", "a model, by its path"))

    def chosen(word: str | None) -> None:
        if word == _FILE:
            path = "~/" if row.choice else row.value
            ask = AskText(f"{row.title}: path of a model", path, enter="takes it", is_path=True)
            screen.app.push_screen(ask, write)
        else:
            write(word)

    screen.app.push_screen(AskOne(f"{row.key}: {row.setting.help}", rows, current=row.choice or _FILE), chosen)

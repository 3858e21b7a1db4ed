"""Choose a theme, with a live preview of each."""

import asyncio
from typing import Any

from textual.app import App

from localrun.base.errors import LocalrunError
from localrun.base.settings import write_setting
from localrun_tui.screens.dialogs.ask import AskOne
from localrun_tui.themes import DARK, LIGHT
from localrun_tui.widgets.toast import toast_error


async def choose_theme(app: App[Any]) -> bool:
    """Put one on and keep it in config.toml; what was there comes back when none is chosen. Gives whether one was."""

    def put_on(name: str) -> None:
        app.theme = name

    before, ours = app.theme, (DARK.name, LIGHT.name)
    names = [*ours, *sorted(name for name in app.available_themes if name not in ours)]
    rows = [(name, name, "") for name in names]
    question = AskOne("Theme (theme in config.toml)", rows, current=before, preview=put_on)
    name = await app.push_screen_wait(question)
    put_on(name or before)
    if name is not None:
        try:
            await asyncio.to_thread(write_setting, "theme", name)  # before anybody reads it
        except LocalrunError as error:
            toast_error(app, error)
    return name is not None

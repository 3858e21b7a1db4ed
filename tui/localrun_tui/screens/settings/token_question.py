"""Asking for the token of Hugging Face, which nobody sees and only huggingface-hub keeps."""

import asyncio
from typing import Any

from textual.app import App

from localrun.base.errors import LocalrunError
from localrun.hub.network.hub_token import TOKENS_PAGE, keep_token
from localrun_tui.screens.dialogs.ask import AskText
from localrun_tui.widgets.toast import toast


async def ask_for_token(app: App[Any]) -> bool:
    """Ask for a token until one is good, and keep it: whether there is one now."""
    about = f"from {TOKENS_PAGE}"
    while True:
        question = AskText("Token for Hugging Face", "", about, "checks and keeps it", is_secret=True)
        token = await app.push_screen_wait(question)
        if token is None:
            return False
        try:
            await asyncio.to_thread(keep_token, token)
        except LocalrunError as error:
            about = f"{error.message}: {error.hint}"
        else:
            toast(app, "The token is kept", "Models whose authors gave you access can be downloaded now.")
            return True

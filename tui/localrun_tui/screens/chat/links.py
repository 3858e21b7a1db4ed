"""Links in an answer: shown whole, and opened only when the user says so."""

import webbrowser
from typing import Any
from urllib.parse import urlsplit

from textual.app import App

from localrun.base.errors import UsageError
from localrun_tui.screens.dialogs.ask import AskOne
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.widgets.columns import say


async def open_link(app: App[Any], links: list[str]) -> None:
    """Ask which of several, then whether; only http and https are opened at all."""
    link = links[0]
    if len(links) > 1:
        chosen = await app.push_screen_wait(AskOne("Which link?", [(str(n), url, "") for n, url in enumerate(links)]))
        if chosen is None:
            return
        link = links[int(chosen)]
    if not is_web(link):
        raise UsageError(f"this is no web address: {say(link)}", "only http and https links are opened")
    facts = [("Address", link), ("Host", urlsplit(link).hostname or "")]
    if await app.push_screen_wait(ConfirmScreen("Open this link in the browser?", facts, yes="Open", danger=True)):
        webbrowser.open(link)


def is_web(link: str) -> bool:
    """Whether a browser, and nothing else, would open it."""
    try:
        parts = urlsplit(link)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and link.isprintable()
    except ValueError:
        return False

"""The command palette: everything that can be done, by name."""

from collections.abc import Callable, Iterable
from typing import Any

from textual.app import App, SystemCommand
from textual.screen import Screen

_CHAT = (
    ("New chat", "an empty one", "new_chat"),
    ("Chats", "search, open, rename, export, delete", "history"),
    ("This chat", "system prompt, sampling, thinking, what happens when the context is full", "chat_settings"),
    ("Attach a text file", "goes along with the next message", "attach"),
    ("Answer again", "another answer to the last message, as a branch", "regenerate"),
    ("Inspector", "the KV cache, memory, and where the time goes", "inspector"),
)
_APP = (
    ("Models", "on disk, in the catalogue, on the hub, on a server", "models"),
    ("Downloads", "running, waiting and finished", "downloads"),
    ("Settings", "everything in config.toml", "settings"),
    ("Theme", "dark, light and many more", "change_theme"),
    ("Keys", "all of them", "help"),
    ("Quit", "chats are kept", "quit"),
)


def commands(app: App[Any], chat: Screen[Any] | None) -> Iterable[SystemCommand]:
    """Commands of the app, and before them those of `chat`, the chat's screen, where it is in front."""
    if chat is not None:
        for title, explanation, action in _CHAT:
            yield SystemCommand(title, explanation, _runner(chat, action))
    for title, explanation, action in _APP:
        yield SystemCommand(title, explanation, _runner(app, action))


def _runner(owner: Any, action: str) -> Callable[[], Any]:
    async def run() -> None:
        await owner.run_action(action)

    return run

"""Starts the app: with real engines, the chats on disk, and the model to begin with."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from localrun.base.settings import tell_of_unknown_settings_by
from localrun_tui.app import LocalrunApp
from localrun_tui.themes import kept_theme

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from localrun.base.request import ProgressCallback
    from localrun.chat.journal import ChatStore
    from localrun.client.choice import ModelChoice
    from localrun.client.interface import EngineClient

PROGRAM = "the app"  # as others see it that share their engine


def run(
    model: str | None = None,
    precision: str = "auto",
    attach: bool = True,
    held: "Mapping[str, Any] | None" = None,
    choice: "ModelChoice | None" = None,
    go_on: bool = False,
) -> int:
    """Run the app until the user leaves; gives the exit code. `held`: context, codec, window and adapters of the first
    model, which `choice` is where it is on a server. `go_on`: with the chat that was used last."""
    named = {name: value for name, value in (held or {}).items() if value is not None}
    first = choice.stored.name if choice is not None else model
    flags = {**({"model": first} if first else {}), **named}
    flags.pop("adapters", None)  # a chat has them, no setting

    def tell(line: str) -> None:
        app.notify(line, markup=False)

    def open_model(choice: "ModelChoice", progress: "ProgressCallback") -> "EngineClient":
        return open_client(choice, progress, PROGRAM if attach else "", tell)

    def choose() -> "ModelChoice | None":
        return choice or _first_choice(model, precision, named)

    app = LocalrunApp(open_model, open_store, choose, kept_theme(), flags, go_on)
    tell_of_unknown_settings_by(lambda text: app.notify(text, severity="warning"))
    return app.run_on_terminal()


def open_client(
    choice: "ModelChoice",
    progress: "ProgressCallback",
    attach_as: str = "",
    tell: "Callable[[str], None]" = lambda line: None,
) -> "EngineClient":
    """An engine in a process of its own, that of a running localrun, or a server. Blocks until it is there."""
    from localrun.base.settings import read_settings
    from localrun.client.open_client import open_client

    return open_client(choice, read_settings(), progress, apart=True, attach_as=attach_as, tell=tell)


def open_store() -> "ChatStore":
    """The chats on disk; in memory only, and saying so, where nothing can be written."""
    from localrun.base.paths import what_is_not_kept, writable_folder
    from localrun.chat.journal import ChatStore

    store = ChatStore(writable_folder("chats"))
    if store.folder is None:
        store.notice = what_is_not_kept("chats")
    return store


def _first_choice(model: str | None, precision: str, named: "Mapping[str, Any]") -> "ModelChoice | None":
    from localrun.client.choice import first_choice

    choice = first_choice(model, precision)
    return replace(choice, **named) if choice is not None else None

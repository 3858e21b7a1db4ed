"""Starts the app: with real engines, the chats on disk, and the model to begin with."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from localrun.base.errors import LocalrunError
from localrun.base.request import LoadOptions
from localrun.base.settings import tell_of_unknown_settings_by
from localrun_tui.app import LocalrunApp

if TYPE_CHECKING:
    from localrun.chat.journal import ChatStore
    from localrun.client.interface import EngineClient
    from localrun_tui.state.choice import ModelChoice
    from localrun_tui.state.model_slot import Progress


def run(model: str | None = None, precision: str = "auto") -> int:
    """Run the app until the user leaves; gives the exit code."""
    flags = {"model": model} if model else {}
    app = LocalrunApp(open_client, open_store, lambda: first_choice(model, precision), kept_theme(), flags)
    tell_of_unknown_settings_by(lambda text: app.notify(text, severity="warning"))
    if sys.platform != "win32":
        from localrun_tui.terminal import Terminal

        app.driver_class = Terminal
    app.run()
    return app.return_code or 0


def kept_theme() -> str | None:
    """The theme of config.toml; a broken file is told of when the model is looked for."""
    from localrun.base.settings import read_settings

    try:
        return read_settings().theme
    except LocalrunError:
        return None


def open_client(choice: "ModelChoice", progress: "Progress") -> "EngineClient":
    """An engine in a process of its own, or a server. Blocks until it is there."""
    from localrun.hub.stored import StoredModel

    if not isinstance(choice.stored, StoredModel):
        from localrun.client.remote import RemoteClient

        return RemoteClient(choice.stored)
    from localrun.client.worker import WorkerClient
    from localrun.hub.library import mark_used
    from localrun.hub.unsynced import require_whole

    require_whole(choice.stored)
    client = WorkerClient(load_options(choice), progress)
    mark_used(choice.stored.path)
    return client


def load_options(choice: "ModelChoice") -> LoadOptions:
    """How to load a model on disk: what was chosen, and below it config.toml."""
    from localrun.base.settings import read_settings
    from localrun.hub.load_options import load_options as load_as_set
    from localrun.hub.stored import StoredModel

    stored = choice.stored
    assert isinstance(stored, StoredModel)
    settings = read_settings()
    settings = replace(
        settings,
        kv=settings.kv if choice.kv == "auto" else choice.kv,
        ctx=settings.ctx if choice.ctx is None else choice.ctx,
        window=settings.window if choice.window is None else choice.window,
    )
    return load_as_set(stored, settings, precision=choice.precision, chat_id=choice.chat_id)


def open_store() -> "ChatStore":
    """The chats on disk; in memory only, and saying so, where nothing can be written."""
    from localrun.base.paths import what_is_not_kept, writable_folder
    from localrun.chat.journal import ChatStore

    store = ChatStore(writable_folder("chats"))
    if store.folder is None:
        store.notice = what_is_not_kept("chats")
    return store


def first_choice(model: str | None, precision: str) -> "ModelChoice | None":
    """The model that was named, on the command line or in LOCALRUN_MODEL, else the one last used, else the default one;
    None when there was none yet."""
    from localrun.base.settings import FILE_NAME, read_sources
    from localrun.hub.library import scan
    from localrun.hub.resolve import resolve
    from localrun_tui.state.choice import ModelChoice

    default, source = read_sources().get("model", (None, ""))
    used = [stored for stored in scan() if stored.last_used is not None]
    if used and model is None and source in ("", FILE_NAME):
        last = max(used, key=lambda stored: stored.last_used or 0.0)
        return ModelChoice(last, last.precision)
    name = model or default
    if name is None:
        return None
    stored = resolve(name, precision)
    return ModelChoice(stored, stored.precision)

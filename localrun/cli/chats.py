"""Chats on disk, as the commands find them."""

import time
from dataclasses import replace
from typing import Annotated

import typer

from localrun.base.errors import NotFoundError
from localrun.base.paths import what_is_not_kept, writable_folder
from localrun.chat.journal import Chat, ChatStore, ChatSummary
from localrun.cli.console import note
from localrun.cli.groups import ModelOptions
from localrun.hub.resolve import resolve

ContinueSwitch = Annotated[
    bool, typer.Option("-c", "--continue", metavar="", help="go on with the last chat", rich_help_panel="The chat")
]
KeepSwitch = Annotated[
    bool | None,
    typer.Option(
        "--history/--no-history",
        metavar="",
        help="keep this chat, or do not; from a pipe it is not kept",
        show_default=False,
        rich_help_panel="The chat",
    ),
]


def open_store(kept: bool = True) -> ChatStore:
    """The user's chats; says so where nothing can be written. Without `kept`, a store that forgets."""
    folder = writable_folder("chats") if kept else None
    if kept and folder is None:
        note(what_is_not_kept("chats"))
    return ChatStore(folder)


def begin(store: ChatStore, go_on: bool, typed: str | None, usual: str | None) -> Chat:
    """A new chat, or with `go_on` the last one, whose system message changes only to one that was `typed`."""
    last = store.summaries()[:1] if go_on else []
    if not last:
        if go_on:
            note("(there is no chat yet: this is a new one)")
        return store.create(system=usual or "")
    chat = store.open(last[0].id)
    if typed is not None and typed != chat.system:
        chat.set(system=typed)
    return chat


def with_model_of(chat: Chat, options: ModelOptions) -> ModelOptions:
    """The model that was named, else the one the chat was held with, if it is still there."""
    if options.model or not chat.model:
        return options
    try:
        resolve(chat.model)
    except NotFoundError:
        note(f"({chat.model}, with which this chat was held, is not on disk)")
        return options
    return replace(options, model=chat.model)


def columns(number: int, chat: ChatSummary) -> tuple[str, ...]:
    """A row of the list."""
    return str(number), when(chat.updated), f"{chat.n_messages}", chat.title or "(no title)", chat.id


def when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))

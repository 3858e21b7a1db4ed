"""Chats on disk, as the commands find them."""

import time
from dataclasses import replace
from typing import Annotated

import typer

from localrun.base.errors import NotFoundError
from localrun.base.paths import what_is_not_kept, writable_folder
from localrun.chat.journal import Chat, ChatStore, ChatSummary
from localrun.chat.remembered import HeldWith, held_with, hold_with
from localrun.cli.console import note
from localrun.cli.groups import LoadOptionFlags, ModelOptions
from localrun.hub.resolve import resolve
from localrun.hub.stored import StoredModel

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
    held = held_with(chat)
    if options.model or not held.model:
        return options
    precision = options.precision if options.precision != "auto" else held.precision or "auto"
    for wanted in dict.fromkeys((precision, options.precision)):
        try:
            resolve(held.model, wanted)
        except NotFoundError:
            continue
        return replace(options, model=held.model, precision=wanted)
    note(f"({held.model}, with which this chat was held, is not on disk)")
    return options


def held_as(chat: Chat, stored: StoredModel, load: LoadOptionFlags) -> LoadOptionFlags:
    """How to hold the model: as typed, else as it was held in this chat. The chat remembers it."""
    held = held_with(chat)
    ctx = held.ctx if load.ctx is None else load.ctx
    kv = load.kv or (None if held.kv == "auto" else held.kv)
    window = load.window or held.window
    hold_with(chat, HeldWith(stored.name, stored.precision, ctx, kv or "auto", window))
    return replace(load, ctx=ctx, kv=kv, window=window)


def columns(number: int, chat: ChatSummary) -> tuple[str, ...]:
    """A row of the list."""
    return str(number), when(chat.updated), f"{chat.n_messages}", chat.title or "(no title)", chat.id


def when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))

"""Stored chats, as the commands open them."""

import time
from dataclasses import replace
from typing import Annotated, cast

import typer

from localrun.base.adapter_choice import read_adapter
from localrun.base.errors import NotFoundError, UsageError
from localrun.base.paths import what_is_not_kept, writable_folder
from localrun.base.request import KVCodecName
from localrun.chat.chat_settings import HeldWith, held_with, hold_with
from localrun.chat.journal import Chat, ChatStore, ChatSummary
from localrun.cli.console import note
from localrun.cli.groups import EngineFlags, HubOptions, LoadOptionFlags, ModelOptions
from localrun.cli.session import find_choice, open_engine
from localrun.client.choice import ModelChoice, held_by
from localrun.client.interface import EngineClient
from localrun.hub.disk.stored import StoredModel
from localrun.hub.resolve import resolve

ContinueSwitch = Annotated[
    bool, typer.Option("-c", "--continue", metavar="", help="continue the last chat", rich_help_panel="The chat")
]
KeepSwitch = Annotated[
    bool | None,
    typer.Option(
        "--history/--no-history",
        metavar="",
        help="store this chat, or do not; a chat from a pipe is not stored",
        show_default=False,
        rich_help_panel="The chat",
    ),
]


def open_store(kept: bool = True) -> ChatStore:
    """Open the user's chats; a note says so where the folder cannot be written.

    Without `kept`, the store writes nothing.
    """
    folder = writable_folder("chats") if kept else None
    if kept and folder is None:
        note(what_is_not_kept("chats"))
    return ChatStore(folder)


def begin(store: ChatStore, go_on: bool, typed: str | None, usual: str | None) -> Chat:
    """Start a new chat, or continue the last one with `go_on`.

    A continued chat changes its system message only where one was `typed`.
    """
    last = store.summaries()[:1] if go_on else []
    if not last:
        if go_on:
            note("(there is no chat yet: this is a new one)")
        return store.create(system=usual or "")
    chat = store.open(last[0].id)
    if typed is not None and typed != chat.system:
        chat.set(system=typed)
    return chat


def choice_for(
    chat: Chat | None, options: ModelOptions, hub: HubOptions, load: LoadOptionFlags, server: str | None
) -> ModelChoice:
    """Choose the named model, else the model of `chat` if it still exists, else the default model."""
    held = HeldWith() if chat is None else held_with(chat)
    if options.model is None and server is None:
        if held.server:
            server = _known_server(held.server)
            options = replace(options, model=held.model if server else None)
        elif held.model:
            options = _with_model(held, options)
    return find_choice(options, hub, load, server)


def _known_server(name: str) -> str | None:
    try:
        from localrun.client.remote.endpoints import server_named

        server_named(name)
    except NotFoundError:
        note(f"({name}, the server of this chat, is not among the added servers)")
        return None
    return name


def _with_model(held: HeldWith, options: ModelOptions) -> ModelOptions:
    precision = options.precision if options.precision != "auto" else held.precision or "auto"
    for wanted in dict.fromkeys((precision, options.precision)):
        try:
            resolve(held.model, wanted)
        except (NotFoundError, UsageError):
            continue
        return replace(options, model=held.model, precision=wanted)
    note(f"({held.model}, the model of this chat, is not on disk)")
    return options


def held_as(chat: Chat, choice: ModelChoice, load: LoadOptionFlags) -> ModelChoice:
    """Complete the load options that were typed with those that the chat was last held with."""
    held = held_with(chat)
    ctx = held.ctx if load.ctx is None else load.ctx
    kv = load.kv or (None if held.kv == "auto" else held.kv)
    window = load.window or held.window
    if isinstance(choice.stored, StoredModel):
        codec = cast(KVCodecName, kv or "auto")
        choice = replace(choice, ctx=ctx, kv=codec, window=window, chat_id=chat.id if chat.kept else "")
        if choice.adapters is None and held.model == choice.stored.name:
            choice = replace(choice, adapters=tuple(map(read_adapter, held.adapters)))
    return choice


def open_for(chat: Chat, choice: ModelChoice, load: EngineFlags, program: str) -> EngineClient:
    """Open the engine that answers in `chat`, and note the model in the chat. `program` is the command."""
    choice = held_as(chat, choice, load)
    client = open_engine(choice, load, program)
    hold_with(chat, held_by(choice, client.info.name))
    return client


def columns(number: int, chat: ChatSummary) -> tuple[str, ...]:
    """One row of the list of chats."""
    return str(number), when(chat.updated), f"{chat.n_messages}", chat.title or "(no title)", chat.id


def when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))

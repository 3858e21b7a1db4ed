"""`localrun history`: the stored chats."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from localrun.base.errors import UsageError
from localrun.base.paths import folder
from localrun.base.sanitize import clean
from localrun.chat.export import as_data, iso_date, to_json, to_markdown, write_export
from localrun.chat.journal import ChatStore, ChatSummary, find_chat
from localrun.chat.search import search
from localrun.cli.chats import columns
from localrun.cli.completion import complete_chat
from localrun.cli.console import agreed, can_ask, is_terminal, note, write, write_json, write_table
from localrun.cli.groups import JsonSwitch, command, switch
from localrun.cli.text_input import typed_text

history = typer.Typer(name="history")

_CHAT = Annotated[
    str, typer.Argument(metavar="CHAT", help="a number in the list, an id, or last", autocompletion=complete_chat)
]


def _store() -> ChatStore:
    return ChatStore(folder("chats"))


def list_chats(
    limit: Annotated[int, typer.Option("-n", metavar="N", min=0, help="how many; 0 is all")] = 0,
    json: JsonSwitch = False,
) -> int:
    """List the chats, the last changed first."""
    chats = _store().summaries()
    shown = chats[: limit or None]
    if json:
        write_json([as_row(chat) for chat in shown])
    elif shown:
        write_table([("", "LAST", "MESSAGES", "TITLE", "ID"), *(columns(n, chat) for n, chat in enumerate(shown, 1))])
    else:
        note("there are no stored chats yet: `localrun chat` starts one")
    return 0


def show_chat(chat: _CHAT, json: JsonSwitch = False) -> int:
    """Show one chat as text."""
    store = _store()
    found = store.peek(find_chat(store, chat).id)
    if found.damaged:
        note(f"{found.damaged} places of its file are damaged; what they held is missing")
    if json:
        write_json(as_data(found))
    else:
        _print(to_markdown(found))
    return 0


def search_chats(
    words: Annotated[
        list[str], typer.Argument(metavar="WORD…", help="the beginning of a word in the message; all must match")
    ],
    limit: Annotated[int, typer.Option("-n", metavar="N", min=1, help="how many at most")] = 50,
    json: JsonSwitch = False,
) -> int:
    """Find messages in all chats."""
    store = _store()
    hits = search(store, typed_text(" ".join(words)), limit)
    if json:
        write_json([{"chat": h.chat_id, "message": h.message_id, "title": h.title, "snippet": h.snippet} for h in hits])
    elif hits:
        numbers = {one.id: str(number) for number, one in enumerate(store.summaries(), 1)}
        write_table([(numbers.get(hit.chat_id, ""), hit.title, hit.snippet) for hit in hits])
    else:
        note("nothing found")
    return 0


def export_chat(
    chat: _CHAT,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", show_default=False)] = None,
    keep_metadata: Annotated[bool, switch("--keep-metadata", "of images, such as where a photo was taken")] = False,
    json: JsonSwitch = False,
) -> int:
    """Write a chat as Markdown, or as JSON, to FILE with its images beside it, or to stdout. FILE.json is JSON."""
    store = _store()
    found = store.peek(find_chat(store, chat).id)
    as_json = json or (file or "").endswith(".json")
    if file is None:
        _print(to_json(found) if as_json else to_markdown(found))
    else:
        write_export(found, Path(file).expanduser(), as_json, keep_metadata)
        note(f"exported to {file}")
    return 0


def remove_chats(
    chats: Annotated[list[str], typer.Argument(metavar="CHAT…", autocompletion=complete_chat)],
    yes: Annotated[bool, switch("--yes", "do not ask")] = False,
    erase: Annotated[bool, switch("--erase", "delete for good now, not after 30 days")] = False,
    json: JsonSwitch = False,
) -> int:
    """Remove chats from the history. `history restore` brings one back within 30 days."""
    store = _store()
    removed = {one.id: one for one in store.summaries(deleted=True)} if erase else {}
    found = list({one.id: one for one in (removed.get(c) or find_chat(store, c) for c in chats)}.values())
    question = ", ".join(f"{one.title or one.id} ({one.n_messages} messages)" for one in found)
    if not yes:
        if not can_ask():
            raise UsageError(f"cannot ask without a terminal: {question}", "add --yes")
        if not agreed(f"Remove {question}?"):
            note("nothing was removed")
            return 0
    for one in found:
        (store.erase if erase else store.delete)(one.id)
    if json:
        write_json([one.id for one in found])
    note(f"removed {question}")
    if not erase:
        note("\n".join(f"to bring it back within 30 days: localrun history restore {one.id}" for one in found))
    return 0


def restore_chat(chat: Annotated[str, typer.Argument(metavar="ID")]) -> int:
    """Restore a removed chat."""
    store = _store()
    store.restore(chat)
    note(f"restored {store.open(chat).title}")
    return 0


def as_row(chat: ChatSummary) -> dict[str, Any]:
    """The fields of `history list --json`."""
    return {
        "id": chat.id,
        "title": chat.title,
        "model": chat.model,
        "created": iso_date(chat.created),
        "updated": iso_date(chat.updated),
        "messages": chat.n_messages,
    }


def _print(text: str) -> None:
    write(clean(text) if is_terminal(sys.stdout) else text)


def _alone(context: typer.Context) -> int:
    """The stored chats: list, show, search, export, remove. Alone: the list."""
    return list_chats() if context.invoked_subcommand is None else 0


history.callback(invoke_without_command=True)(_alone)
for name, function in (
    ("list", list_chats),
    ("show", show_chat),
    ("search", search_chats),
    ("export", export_chat),
    ("rm", remove_chats),
    ("restore", restore_chat),
):
    history.command(name)(command(function))

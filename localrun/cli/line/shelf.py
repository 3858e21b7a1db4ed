"""Commands of plain chat for whole chats: list, open, name, organise, delete and restore."""

from pathlib import Path

from localrun.base.errors import UsageError
from localrun.chat.export import write_export
from localrun.chat.journal import Chat, find_chat
from localrun.chat.search import search
from localrun.cli.chats import columns, when
from localrun.cli.console import note, table
from localrun.cli.line.chat import LineChat
from localrun.cli.line.shown import show_end

_SHOWN_CHATS = 20


def begin_new(chat: LineChat, _: str) -> None:
    old = chat.chat
    adapters = [*map(str, chat.model.adapters)] or None
    chat.enter(chat.store.create(model=old.model, system=old.system, preset=old.preset, adapters=adapters))
    note("(a new chat)")


def list_chats(chat: LineChat, _: str) -> None:
    chats = chat.store.summaries()
    rows = [columns(number, one)[:-1] for number, one in enumerate(chats[:_SHOWN_CHATS], 1)]
    marks = [", ".join(filter(None, ["pinned" if one.pinned else "", one.folder])) for one in chats[:_SHOWN_CHATS]]
    rows = [(*row, f"({mark})" if mark else "") for row, mark in zip(rows, marks, strict=True)]
    note("\n".join(table(rows)) if rows else "(no chats yet)")
    if len(chats) > len(rows):
        note(f"and {len(chats) - len(rows)} older ones: `localrun history list`")


def open_chat(chat: LineChat, wanted: str) -> None:
    if not wanted:
        raise UsageError("/open needs a number or an id", "/list shows them")
    _enter(chat, find_chat(chat.store, wanted).id)


def search_all(chat: LineChat, words: str) -> None:
    numbers = {one.id: number for number, one in enumerate(chat.store.summaries(), 1)}
    hits = search(chat.store, words, limit=_SHOWN_CHATS)
    rows = [(str(numbers.get(hit.chat_id, "")), _start_of(hit.title), hit.snippet) for hit in hits]
    note("\n".join([*table(rows), "/open NUMBER goes there."]) if rows else "(nothing found)")


def name_chat(chat: LineChat, title: str) -> None:
    if title:
        chat.chat.set(title=title)
    note(f"(title: {chat.chat.title or 'none'})")


def pin(chat: LineChat, _: str) -> None:
    found = _begun(chat)
    found.set(pinned=not found.pinned)
    note("(pinned: it stays at the top of the app's list)" if found.pinned else "(not pinned any more)")


def put_in_folder(chat: LineChat, name: str) -> None:
    found = _begun(chat)
    if name:
        found.set(folder="" if name == "none" else name)
    note(f"(folder: {found.folder or 'none'})")
    others = sorted({one.folder for one in chat.store.summaries() if one.folder}, key=str.casefold)
    if not name and others:
        note(f"There are {', '.join(others)}; /folder NAME moves the chat into one, /folder none out of it.")


def duplicate(chat: LineChat, _: str) -> None:
    chat.enter(chat.store.duplicate(_begun(chat).id))
    note("(you are in the copy now; the original stays unchanged)")


def delete(chat: LineChat, _: str) -> None:
    """Delete the chat without a question, because /undelete restores it."""
    old = _begun(chat)
    chat.store.delete(old.id)
    chat.deleted.append(old.id)
    note(f"(deleted: {old.title}; /undelete brings it back, for 30 days so does `localrun history restore {old.id}`)")
    begin_new(chat, "")


def undelete(chat: LineChat, _: str) -> None:
    if not chat.deleted:
        raise UsageError("nothing was deleted since the start", "`localrun history restore ID` restores others")
    chat_id = chat.deleted.pop()
    chat.store.restore(chat_id)
    _enter(chat, chat_id)


def save(chat: LineChat, name: str) -> None:
    path = Path(name).expanduser()
    write_export(chat.chat, path, as_json=path.suffix == ".json")
    note(f"(saved to {path})")


def _enter(chat: LineChat, chat_id: str) -> None:
    found = chat.store.open(chat_id)
    note(f"({found.title}; {when(found.created)})")
    if found.damaged:
        note(f"({found.damaged} places of its file are damaged)")
    chat.enter(found)
    show_end(chat)


def _begun(chat: LineChat) -> Chat:
    if not len(chat.chat.tree):
        raise UsageError("this chat has no messages yet", "type a message")
    return chat.chat


def _start_of(title: str) -> str:
    return title if len(title) <= 24 else f"{title[:23]}…"

"""The commands of `localrun chat`: lines that begin with a slash."""

from collections.abc import Callable, Iterator
from pathlib import Path

from localrun.base.errors import UsageError
from localrun.chat.export import write_export
from localrun.chat.overflow import POLICIES, horizon_of
from localrun.chat.search import search
from localrun.chat.tree import Message
from localrun.cli.chats import columns, find_chat, when
from localrun.cli.console import note, table
from localrun.cli.line_chat import LineChat
from localrun.cli.session import show_stats

_SHOWN_CHATS = 20
_SHOWN_MESSAGES = 4
_SHOWN_CHARACTERS = 60


def take(chat: LineChat, text: str) -> None:
    """A message, or a command. EOFError for the one that leaves."""
    if not text.startswith("/") or text.startswith("//"):
        chat.send(text[1:] if text.startswith("//") else text)
        return
    name, _, rest = text.partition(" ")
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name}", "/help shows them; // begins a message with a slash")
    COMMANDS[name][1](chat, rest.strip())


def show_messages(messages: list[Message], horizon: str | None) -> None:
    """A transcript as text."""
    for message in messages:
        if message.id == horizon:
            note("--- the model no longer sees what is above ---")
        who = {"user": "You", "assistant": "Model"}.get(message.role, message.role)
        note(f"{who}: {message.text.strip()}{' (stopped)' if message.interrupted else ''}")


def _help(chat: LineChat, _: str) -> None:
    width = max(map(len, COMMANDS))
    note("\n".join(f"{name:{width}}  {what}" for name, (what, _) in COMMANDS.items()))
    note("A line that ends in \\ goes on in the next one. Ctrl-C stops an answer.")


def _new(chat: LineChat, _: str) -> None:
    old = chat.chat
    chat.enter(chat.store.create(model=old.model, system=old.system, preset=old.preset))
    note("(a new chat)")


def _undo(chat: LineChat, _: str) -> None:
    note(f"(took back: {chat.undo()})")


def _retry(chat: LineChat, _: str) -> None:
    chat.retry()


def _edit(chat: LineChat, text: str) -> None:
    if not text:
        raise UsageError("/edit needs the new text", "/edit TEXT")
    chat.edit(text)


def _show(chat: LineChat, _: str) -> None:
    show_messages(chat.chat.tree.path(chat.chat.tree.head), _horizon(chat))


def _horizon(chat: LineChat) -> str | None:
    return horizon_of(chat.chat, chat.client.info.ctx)


def _branch(chat: LineChat, wanted: str) -> None:
    versions = list(_versions(chat))
    if not versions:
        raise UsageError("this chat has no branches", "/edit and /retry make one")
    if not wanted:
        note("\n".join(line for _, line in versions))
        note("/branch NUMBER goes there.")
        return
    if not wanted.isdecimal() or not 1 <= int(wanted[:9]) <= len(versions):
        raise UsageError(f"there is no branch {wanted}", "/branch shows them")
    chat.chat.select(versions[int(wanted[:9]) - 1][0])
    chat.unanswered = None
    _show_end(chat)


def _versions(chat: LineChat) -> Iterator[tuple[str, str]]:
    """Every message on or beside the branch that has others beside it: its id and a line about it."""
    tree, number, turn = chat.chat.tree, 0, 0
    path = [None, *(message.id for message in tree.path(tree.head))]
    for parent, shown in zip(path, [*path[1:], None], strict=True):
        versions = tree.children(parent)
        turn += bool(versions) and tree[versions[0]].role == "user"
        for version in versions if len(versions) > 1 else ():
            number += 1
            what = "you" if tree[version].role == "user" else "answer"
            yield version, f"{number:3} {'*' if version == shown else ' '} turn {turn}, {what}: {_start(tree[version])}"


def _start(message: Message) -> str:
    line = " ".join(message.text.split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}…"


def _list(chat: LineChat, _: str) -> None:
    chats = chat.store.summaries()
    rows = [columns(number, one)[:-1] for number, one in enumerate(chats[:_SHOWN_CHATS], 1)]
    note("\n".join(table(rows)) if rows else "(no chats yet)")
    if len(chats) > len(rows):
        note(f"and {len(chats) - len(rows)} older ones: `localrun history list`")


def _open(chat: LineChat, wanted: str) -> None:
    if not wanted:
        raise UsageError("/open needs a number or an id", "/list shows them")
    found = chat.store.open(find_chat(chat.store, wanted).id)
    note(f"({found.title}; {when(found.created)})")
    if found.damaged:
        note(f"({found.damaged} places of its file are damaged)")
    chat.enter(found)
    _show_end(chat)


def _show_end(chat: LineChat) -> None:
    messages = chat.chat.tree.path(chat.chat.tree.head)
    if len(messages) > _SHOWN_MESSAGES:
        note(f"({len(messages) - _SHOWN_MESSAGES} earlier messages: /show)")
    show_messages(messages[-_SHOWN_MESSAGES:], _horizon(chat))


def _search(chat: LineChat, words: str) -> None:
    if not words:
        raise UsageError("/search needs words", "/search WORDS")
    numbers = {one.id: number for number, one in enumerate(chat.store.summaries(), 1)}
    hits = search(chat.store, words, limit=_SHOWN_CHATS)
    rows = [(str(numbers.get(hit.chat_id, "")), _start_of(hit.title), hit.snippet) for hit in hits]
    note("\n".join([*table(rows), "/open NUMBER goes there."]) if rows else "(nothing found)")


def _start_of(title: str) -> str:
    return title if len(title) <= 24 else f"{title[:23]}…"


def _system(chat: LineChat, text: str) -> None:
    if text:
        chat.chat.set(system="" if text == "none" else text)
    note(f"(system: {chat.chat.system or 'none'})")


def _policy(chat: LineChat, wanted: str) -> None:
    policy = next((name for name in POLICIES if name == wanted), None)
    if wanted and policy is None:
        raise UsageError(f"there is no policy {wanted}", f"one of {', '.join(POLICIES)}")
    if policy:
        chat.chat.set(policy=policy)
    note("When the context is full:")
    for name, (title, what) in POLICIES.items():
        note(f"{'*' if name == chat.chat.policy else ' '} {name}  {title}: {what}")


def _title(chat: LineChat, title: str) -> None:
    if title:
        chat.chat.set(title=title)
    note(f"(title: {chat.chat.title or 'none'})")


def _save(chat: LineChat, name: str) -> None:
    if not name:
        raise UsageError("/save needs a file name", "/save chat.md")
    path = Path(name).expanduser()
    write_export(chat.chat, path, as_json=path.suffix == ".json")
    note(f"(saved to {path})")


def _stats(chat: LineChat, _: str) -> None:
    if chat.last is None:
        raise UsageError("there is no answer yet")
    show_stats(chat.last)


def _quit(chat: LineChat, _: str) -> None:
    raise EOFError


COMMANDS: dict[str, tuple[str, Callable[[LineChat, str], None]]] = {
    "/help": ("what these commands do", _help),
    "/new": ("begin a new chat; this one stays in the history", _new),
    "/undo": ("take the last message and its answer back", _undo),
    "/retry": ("another answer to the last message", _retry),
    "/edit": ("TEXT: reword the last message", _edit),
    "/branch": ("the versions that /retry and /edit left; /branch NUMBER goes to one", _branch),
    "/show": ("the whole chat", _show),
    "/list": ("the last chats", _list),
    "/open": ("NUMBER: go on with another chat", _open),
    "/search": ("WORDS: find a message in any chat", _search),
    "/title": ("TEXT: name this chat", _title),
    "/system": ("TEXT: the system message; none takes it away", _system),
    "/policy": ("stop, drop or roll: what happens when the context is full", _policy),
    "/save": ("FILE: write the chat as Markdown, or as JSON to FILE.json", _save),
    "/stats": ("speed and memory of the last answer", _stats),
    "/quit": ("leave (so does Ctrl-D)", _quit),
}

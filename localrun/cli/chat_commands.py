"""The commands of `localrun chat`: lines that begin with a slash."""

from collections.abc import Callable
from pathlib import Path

from localrun.base.errors import UsageError
from localrun.chat.attachments import read_attachment
from localrun.chat.commands import command_in, commands_of, temperature_in, unescaped
from localrun.chat.export import write_export
from localrun.chat.find import find_chat
from localrun.chat.overflow import POLICIES, horizon_of
from localrun.chat.search import search
from localrun.chat.tree import Message
from localrun.chat.turn import preview_request
from localrun.chat.versions import versions
from localrun.cli.chat_prompts import keep_last, use_prompt
from localrun.cli.chats import columns, when
from localrun.cli.console import note, table
from localrun.cli.line_chat import LineChat
from localrun.cli.session import show_stats

_SHOWN_CHATS = 20
_SHOWN_MESSAGES = 4


def take(chat: LineChat, text: str) -> None:
    """A message, or a command. EOFError for the one that leaves."""
    found = command_in(text, "plain")
    if found is None:
        chat.send(unescaped(text))
    else:
        command, rest = found
        HANDLERS[command.name](chat, rest)


def show_messages(messages: list[Message], horizon: str | None) -> None:
    """A transcript as text."""
    for message in messages:
        if message.id == horizon:
            note("--- the model no longer sees what is above ---")
        who = {"user": "You", "assistant": "Model"}.get(message.role, message.role)
        note(f"{who}: {message.text.strip()}{' (stopped)' if message.interrupted else ''}")


def _help(chat: LineChat, _: str) -> None:
    commands = commands_of("plain").values()
    width = max(len(command.usage) for command in commands)
    note("\n".join(f"{one.usage:{width}}  {one.title}: {one.help}" for one in commands))
    note("A line that ends in \\ goes on in the next one. Ctrl-C stops an answer.")


def _new(chat: LineChat, _: str) -> None:
    old = chat.chat
    chat.enter(chat.store.create(model=old.model, system=old.system, preset=old.preset))
    note("(a new chat)")


def _undo(chat: LineChat, _: str) -> None:
    note(f"(took back: {chat.undo()})")


def _retry(chat: LineChat, temperature: str) -> None:
    chat.retry(temperature_in(temperature))


def _continue(chat: LineChat, _: str) -> None:
    chat.go_on()


def _sees(chat: LineChat, _: str) -> None:
    view = chat.client.preview(preview_request(chat.chat, "", chat.shared.options(chat.chat)), pieces=True)
    note("".join(view.pieces))
    note(f"({view.n_tokens:,} tokens, {view.n_cached:,} of them computed already)")


def _edit(chat: LineChat, text: str) -> None:
    if not text:
        raise UsageError("/edit needs the new text", "/edit TEXT")
    chat.edit(text)


def _show(chat: LineChat, _: str) -> None:
    show_messages(chat.chat.tree.path(chat.chat.tree.head), _horizon(chat))


def _horizon(chat: LineChat) -> str | None:
    return horizon_of(chat.chat, chat.client.info.ctx)


def _branch(chat: LineChat, wanted: str) -> None:
    found = list(versions(chat.chat))
    if not found:
        raise UsageError("this chat has no branches", "/edit and /retry make one")
    if not wanted:
        note("\n".join(line for _, line in found))
        note("/branch NUMBER goes there.")
        return
    if not wanted.isdecimal() or not 1 <= int(wanted[:9]) <= len(found):
        raise UsageError(f"there is no branch {wanted}", "/branch shows them")
    chat.chat.select(found[int(wanted[:9]) - 1][0])
    chat.unanswered = None
    _show_end(chat)


def _attach(chat: LineChat, name: str) -> None:
    if not name:
        raise UsageError("/attach needs a file", "/attach notes.pdf")
    attachment = read_attachment(Path(name).expanduser())
    chat.attachments.append(attachment)
    note(f"({attachment.chip} goes along with the next message)")


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
    path = Path(name).expanduser()
    write_export(chat.chat, path, as_json=path.suffix == ".json")
    note(f"(saved to {path})")


def _stats(chat: LineChat, _: str) -> None:
    if chat.last is None:
        raise UsageError("there is no answer yet")
    show_stats(chat.last)


def _quit(chat: LineChat, _: str) -> None:
    raise EOFError


HANDLERS: dict[str, Callable[[LineChat, str], None]] = {
    "/help": _help,
    "/new": _new,
    "/undo": _undo,
    "/retry": _retry,
    "/continue": _continue,
    "/edit": _edit,
    "/branch": _branch,
    "/attach": _attach,
    "/show": _show,
    "/list": _list,
    "/open": _open,
    "/search": _search,
    "/title": _title,
    "/system": _system,
    "/prompt": use_prompt,
    "/keep": keep_last,
    "/policy": _policy,
    "/sees": _sees,
    "/save": _save,
    "/stats": _stats,
    "/quit": _quit,
}

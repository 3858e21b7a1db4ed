"""The commands of `localrun chat`: lines that begin with a slash."""

import base64
import sys
from collections.abc import Callable

from localrun.base.errors import UsageError
from localrun.base.sanitize import clean
from localrun.base.settings import read_settings
from localrun.chat.chat_settings import NUMBERS, numbers_of, own_change, settings_of, think_of
from localrun.chat.commands import (
    adapters_in,
    command_in,
    commands_of,
    copies_chat,
    policy_in,
    temperature_in,
    unescaped,
)
from localrun.chat.export import to_markdown
from localrun.chat.overflow import POLICIES
from localrun.chat.turn import preview_request
from localrun.cli.console import definitions, is_terminal, note, tell
from localrun.cli.line import shelf as chat_shelf
from localrun.cli.line import shown as chat_shown
from localrun.cli.line.chat import LineChat
from localrun.cli.line.files import attach, read_file, size_images, take_named
from localrun.cli.line.others import tell_others
from localrun.cli.line.prompts import keep_last, use_prompt
from localrun.cli.stats import show_stats


def take(chat: LineChat, text: str) -> None:
    """Send a message or run a command. EOFError for the command that leaves the chat."""
    tell_others(chat)
    found = command_in(text, "plain")
    if found is None:
        text = unescaped(text)
        chat.send(take_named(chat, text) if chat.talks else text)
    else:
        command, rest = found
        HANDLERS[command.name](chat, rest)


def _help(chat: LineChat, _: str) -> None:
    commands = commands_of("plain").values()
    note("\n".join(definitions([(one.usage, f"{one.title}: {one.help}") for one in commands])))
    note(
        "@FILE inside a message attaches it. A line that ends in \\ continues on the next one, and three quotes begin "
        "and end a message of several lines. Ctrl-C stops an answer."
    )


def _undo(chat: LineChat, _: str) -> None:
    note(f"(removed: {chat.undo()})")


def _retry(chat: LineChat, temperature: str) -> None:
    chat.retry(temperature_in(temperature))


def _retry_with(chat: LineChat, name: str) -> None:
    if not name:
        raise UsageError("/retry-with needs a model", "`localrun list` shows those on disk")
    chat.retry_with(name)
    note(f"({chat.client.info.name} {chat.client.info.precision} continues this chat; /compare shows both answers)")


def _lora(chat: LineChat, text: str) -> None:
    if text:
        chat.model.adapt(adapters_in(text), chat.chat)
    names = ", ".join(f"{one.path.name} × {one.scale:g}" for one in chat.model.adapters)
    note(f"({names or 'no adapter'} beside the weights of {chat.client.info.name}; /lora FILE[:SCALE] changes that)")


def _continue(chat: LineChat, _: str) -> None:
    chat.go_on()


def _sees(chat: LineChat, _: str) -> None:
    sees = not chat.client.info.why_blind
    request = preview_request(chat.chat, (), chat.shared.options(chat.chat), sees=sees)
    view = chat.client.preview(request, pieces=True)
    if view is None:
        raise UsageError("the server does not say what its model sees", "a model on this machine does")
    note(view.text)
    known = "" if view.n_cached is None else f", {view.n_cached:,} of them computed already"
    note(f"({view.n_tokens:,} tokens{known})")


def _edit(chat: LineChat, text: str) -> None:
    if not text:
        raise UsageError("/edit needs the new text", "/edit TEXT")
    chat.edit(text)


def _copy(chat: LineChat, what: str) -> None:
    """Copy the last answer or the chat by the terminal sequence OSC 52, which also works over ssh."""
    whole = copies_chat(what)
    answers = [one for one in chat.chat.tree.path(chat.chat.tree.head) if one.role == "assistant"]
    if not answers:
        raise UsageError("there is no answer yet")
    if not is_terminal(sys.stderr):
        raise UsageError("only a terminal has a clipboard", "/save FILE writes the chat")
    text = clean(to_markdown(chat.chat) if whole else answers[-1].text)
    tell(f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07")
    note(f"({'chat' if whole else 'answer'} copied)")


def _system(chat: LineChat, text: str) -> None:
    if text:
        chat.chat.set(system="" if text == "none" else text)
    note(f"(system: {chat.chat.system or 'none'})")


def _policy(chat: LineChat, wanted: str) -> None:
    if policy := policy_in(wanted):
        chat.chat.set(policy=policy)
    note("When the context is full:")
    for name, (title, what) in POLICIES.items():
        note(f"{'*' if name == chat.chat.policy else ' '} {name}  {title}: {what}")


def _chat_settings(chat: LineChat, change: str) -> None:
    """Change a setting of the chat if one is given, then show all of them."""
    if change:
        name, value = own_change(change)
        chat.chat.set(**{name: value})
    own, holds = numbers_of(chat.chat), settings_of(chat.chat, read_settings())
    for name in NUMBERS:
        value = getattr(holds, name)
        where = "of this chat" if name in own else "from the settings"
        note(f"{name}: {'the default' if value is None else value} ({where})")
    note(f"preset: {chat.chat.preset or 'none'}")
    note(f"think: {think_of(chat.chat)}")
    if not change:
        note("/chat-settings temperature 0.3 changes one, none resets it; see also /system and /policy.")


def _tools(chat: LineChat, wanted: str) -> None:
    from localrun.tools.tools_command import change_tools, tools_lines

    tools = chat.tools.wanted()
    if wanted:
        change_tools(tools, wanted)
    note("\n".join(tools_lines(tools)))


def _stats(chat: LineChat, _: str) -> None:
    if chat.last is None:
        raise UsageError("there is no answer yet")
    show_stats(chat.last)


def _quit(chat: LineChat, _: str) -> None:
    raise EOFError


HANDLERS: dict[str, Callable[[LineChat, str], None]] = {
    "/help": _help,
    "/new": chat_shelf.begin_new,
    "/undo": _undo,
    "/retry": _retry,
    "/retry-with": _retry_with,
    "/lora": _lora,
    "/continue": _continue,
    "/edit": _edit,
    "/branch": chat_shown.branch,
    "/compare": chat_shown.compare,
    "/attach": attach,
    "/image": size_images,
    "/read": read_file,
    "/copy": _copy,
    "/show": chat_shown.show_all,
    "/list": chat_shelf.list_chats,
    "/open": chat_shelf.open_chat,
    "/search": chat_shelf.search_all,
    "/find": chat_shown.find,
    "/title": chat_shelf.name_chat,
    "/pin": chat_shelf.pin,
    "/folder": chat_shelf.put_in_folder,
    "/duplicate": chat_shelf.duplicate,
    "/delete": chat_shelf.delete,
    "/undelete": chat_shelf.undelete,
    "/system": _system,
    "/prompt": use_prompt,
    "/keep": keep_last,
    "/policy": _policy,
    "/sees": _sees,
    "/save": chat_shelf.save,
    "/chat-settings": _chat_settings,
    "/tools": _tools,
    "/stats": _stats,
    "/quit": _quit,
}

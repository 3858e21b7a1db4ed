"""Slash commands, shared by the app and plain chat, their palette and their help."""

import os
import re
import shlex
from typing import Literal

from localrun.base.adapter_choice import AdapterChoice, read_adapter
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.image_size import SIZES
from localrun.base.nearest import did_you_mean
from localrun.base.setting_rows import SETTINGS
from localrun.chat.conversation import Policy
from localrun.chat.overflow import POLICIES

Face = Literal["app", "plain"]
_COMMAND = re.compile(r"/[a-z-]+\Z")
_NAMED = re.compile(r'(?:"(?P<quoted>[^"]+)"|(?P<bare>\S+))\s*(?P<rest>.*)', re.S)


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command. `arguments` as typed, optional ones in brackets; `title` is its name in the palette.

    `action` is the app's name for it, used by its key and wherever the chat screen adds nothing. One that begins with
    app. works on every screen.
    """

    name: str
    title: str
    help: str
    arguments: str = ""
    faces: tuple[Face, ...] = ("app", "plain")
    action: str = ""

    @property
    def works_everywhere(self) -> bool:
        return self.action.startswith("app.")

    @property
    def needs_arguments(self) -> bool:
        return bool(self.arguments) and not self.arguments.startswith("[")

    @property
    def usage(self) -> str:
        return f"{self.name} {self.arguments}".strip()


_APP: tuple[Face, ...] = ("app",)
_PLAIN: tuple[Face, ...] = ("plain",)
COMMANDS: tuple[Command, ...] = (
    Command("/help", "Keys and commands", "all of them", action="app.help"),
    Command("/new", "New chat", "begin an empty one; this one stays in the history", action="new_chat"),
    Command(
        "/retry",
        "Answer again",
        "another answer to the last message, as a branch",
        "[TEMPERATURE]",
        action="regenerate",
    ),
    Command("/retry-with", "Answer again with another model", "loads it; /compare has both answers", "[MODEL]"),
    Command(
        "/lora", "Adapters", "a LoRA beside the weights of the model, for this chat; none for none", "[FILE[:SCALE]]"
    ),
    Command("/continue", "Go on", "with the last answer, where it was cut or changed"),
    Command("/edit", "Edit the last message", "reword it, as a branch", "[TEXT]"),
    Command("/undo", "Take back", "take the last message and its answer back"),
    Command("/branch", "Branches", "the versions that /retry and /edit left, or go to one", "[NUMBER]"),
    Command("/compare", "Compare versions", "of the last answer, with their figures, or take one", "[NUMBER]"),
    Command(
        "/attach",
        "Attach a file",
        "text, PDF or image, a folder or *.py, along with the next message",
        "[FILE]",
        action="attach",
    ),
    Command("/image", "Size of attached images", f"what each takes, or choose: {', '.join(SIZES)}", "[[NUMBER] SIZE]"),
    Command(
        "/read",
        "Read a long file",
        "of any length, in parts; what that takes is shown first",
        "FILE [QUESTION]",
    ),
    Command("/copy", "Copy the last answer", "or all of the chat", "[chat]"),
    Command("/show", "The whole chat", "show it from the beginning", "", _PLAIN),
    Command("/list", "Chats", "search, open, rename, export, delete", action="history"),
    Command("/open", "Open a chat", "go on with another chat", "[NUMBER]"),
    Command("/search", "Search all chats", "find a message in any of them", "WORDS"),
    Command("/title", "Rename this chat", "give it a title", "[TEXT]", action="this_chat('rename')"),
    Command("/system", "System prompt", "what the model should be like; none takes it away", "[TEXT]"),
    Command("/prompt", "Prompt library", "system prompts, and templates that are filled in", "[NAME]"),
    Command("/keep", "Keep as a prompt", "your last message, in the library", "NAME"),
    Command("/policy", "When the context is full", "stop and ask, drop the oldest, or roll on", "[stop|drop|roll]"),
    Command("/sees", "What the model sees", "the exact prompt, token by token"),
    Command("/odds", "How sure the model was", "of each token of its last answer, and its other candidates", "", _APP),
    Command("/save", "Export this chat", "as Markdown, or as JSON to FILE.json", "FILE"),
    Command("/find", "Find in this chat", "go through the messages that have these words", "[WORDS]", action="find"),
    Command("/pin", "Pin this chat", "to the top of the chats, or back to its day"),
    Command("/folder", "Folder of this chat", "a heading of your own in the list of chats, or none", "[NAME]"),
    Command("/duplicate", "Duplicate this chat", "go on with a copy; this one stays as it is"),
    Command("/delete", "Delete this chat", "it can be brought back"),
    Command("/undelete", "Undo delete", "bring the chat back that was deleted last", action="undelete"),
    Command(
        "/chat-settings",
        "This chat",
        "its numbers, preset and thinking, as in: temperature 0.3",
        "[NAME VALUE]",
        action="chat_settings",
    ),
    Command(
        "/tools",
        "Tools",
        "that the model may call, of MCP servers, too, and what they may do",
        "[NAMES|none|allow FOLDER|forget NUMBER]",
    ),
    Command(
        "/stats",
        "Inspector",
        "speed of the last answer, memory, the KV cache, and where the time goes",
        action="inspector",
    ),
    Command(
        "/explain",
        "Explain",
        "why it is as fast as it is, and what a model of any size takes",
        "[TOPIC]",
        _APP,
        action="app.explain",
    ),
    Command("/models", "Models", "on disk, in the catalogue, on the hub, on a server", "[WORDS]", _APP, "app.models"),
    Command("/serve", "Serve this model", "other programs on this machine may ask it", "[PORT|stop]", _APP),
    Command("/requests", "Requests", "what other programs ask, and why one waits", "", _APP, action="app.requests"),
    Command("/downloads", "Downloads", "running, waiting and finished", "", _APP, action="app.downloads"),
    Command("/settings", "Settings", "everything in config.toml", "", _APP, action="app.settings"),
    Command(
        "/token",
        "Hugging Face token",
        "for models whose authors want consent; kept as `hf auth login` keeps it",
        "",
        _APP,
        action="app.token",
    ),
    Command("/theme", "Theme", "dark, light and many more", "", _APP, action="app.change_theme"),
    Command("/quit", "Quit", "chats are kept; /bye and /exit, too", action="app.quit"),
)

# As other programs call them.
_OTHER_NAMES = {"/bye": "/quit", "/exit": "/quit", "/clear": "/new", "/history": "/list", "/mcp": "/tools"}


def commands_of(face: Face) -> dict[str, Command]:
    """Commands of one face, by name."""
    return {command.name: command for command in COMMANDS if face in command.faces}


def is_command(text: str) -> bool:
    """Whether a text is a command, or meant to be one."""
    return _COMMAND.match(text.strip().partition(" ")[0]) is not None or text.strip() == "/"


def command_in(text: str, face: Face) -> tuple[Command, str] | None:
    """Parse a message as a command and its arguments; None for a message, or a path.

    Raises UsageError for an unknown command, or missing arguments.
    """
    name, _, rest = text.strip().partition(" ")
    if not _COMMAND.match(name):
        return None
    name = _OTHER_NAMES.get(name, name)
    known = commands_of(face)
    if name not in known:
        there = next((command for command in COMMANDS if command.name == name), None)
        what = f"{name} works in the app only" if there and face == "plain" else f"there is no command {name}"
        near = did_you_mean(name, known)
        raise UsageError(what, near or "/help shows them; // begins a message with a slash")
    command = known[name]
    if command.needs_arguments and not rest.strip():
        raise UsageError(f"{name} needs {command.arguments}", command.usage)
    if not command.arguments and rest.strip():
        raise UsageError(f"{name} stands alone: nothing goes behind it", f"// begins a message with a slash: /{name}")
    return command, rest.strip()


def named_file(text: str) -> tuple[str, str]:
    """The file named after /read, in quotes where its name has a blank, and the question behind it."""
    match = _NAMED.match(text.strip())
    return (match["quoted"] or match["bare"], match["rest"].strip()) if match else ("", "")


def copies_chat(what: str) -> bool:
    """Whether /copy copies the whole chat instead of the last answer. Raises UsageError."""
    if what not in ("", "chat"):
        raise UsageError(f"{what} cannot be copied", "/copy copies the last answer, /copy chat all of it")
    return bool(what)


def policy_in(text: str) -> Policy | None:
    """The policy named after /policy; None without one. Raises UsageError."""
    policy = next((name for name in POLICIES if name == text), None)
    if text and policy is None:
        raise UsageError(f"there is no policy {text}", f"one of {', '.join(POLICIES)}")
    return policy


def adapters_in(text: str) -> tuple[AdapterChoice, ...]:
    """The adapters named after /lora, in quotes where a name has a blank; `none` names none. Raises UsageError."""
    try:
        words = [] if text == "none" else shlex.split(text, posix=os.sep == "/")
        return tuple(map(read_adapter, words))
    except ValueError as error:
        raise UsageError(f"/lora {text}: {error}", "/lora FILE, /lora FILE:0.5 or /lora none") from None


def temperature_in(text: str) -> float | None:
    """The temperature given after /retry; None without one. Raises UsageError."""
    if not text:
        return None
    try:
        return float(SETTINGS["temperature"].parse(text))
    except ValueError as error:
        raise UsageError(
            f"{text} is not a temperature: {error}",
            "/retry 0.2 is predictable, /retry 1.2 is varied; /retry-with MODEL uses another model",
        ) from None


def unescaped(text: str) -> str:
    """A message that was typed with // because it begins with a slash."""
    return text[1:] if text.startswith("//") else text

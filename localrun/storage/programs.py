"""Names of programs whose conversations are stored; their chats have ids made from session keys, and no titles."""

from pathlib import Path

from localrun.base.paths import folder, writable_folder
from localrun.base.state_file import change_state, read_state

API_CHATS = "api-"  # begins the ids of their chats
FILE = "programs.json"  # in the cache folder
MOST = 1000  # of which the names are kept, those that were used last


def note_program(chat: str, program: str) -> None:
    """Store the program of a chat, where the folder can be written."""
    home = writable_folder("cache")
    if home is None:
        return

    def with_it(known: dict[str, object]) -> dict[str, object]:
        others = {name: value for name, value in known.items() if name != chat}
        return {**dict(list(others.items())[-MOST + 1 :]), chat: program}

    change_state(home / FILE, with_it)


def programs() -> dict[str, str]:
    """Names of programs by chat; empty where a program gave none."""
    home: Path | None = folder("cache")
    known = read_state(home / FILE if home else None)
    return {chat: name for chat, name in known.items() if chat.startswith(API_CHATS) and isinstance(name, str)}

"""Programs whose conversations are kept: their chats have no titles, but names that were made of their session keys."""

from pathlib import Path

from localrun.base.paths import folder, writable_folder
from localrun.base.state_file import change_state, read_state

API_CHATS = "api-"  # begins the ids of their chats
FILE = "programs.json"  # in the cache folder
MOST = 1000  # of which the names are kept, those that were used last


def note_program(chat: str, program: str) -> None:
    """Keep whose chat that is. Where nothing can be written, it stays unknown."""
    home = writable_folder("cache")
    if home is None:
        return

    def with_it(known: dict[str, object]) -> dict[str, object]:
        others = {name: value for name, value in known.items() if name != chat}
        return {**dict(list(others.items())[-MOST + 1 :]), chat: program}

    change_state(home / FILE, with_it)


def programs() -> dict[str, str]:
    """Names of programs by chat; empty where a program did not say its name."""
    home: Path | None = folder("cache")
    known = read_state(home / FILE if home else None)
    return {chat: name for chat, name in known.items() if chat.startswith(API_CHATS) and isinstance(name, str)}

"""Lists of tools of servers, cached on disk, so that a chat knows the tools before the servers have started."""

import hashlib
import json
import time
from typing import Any

from localrun.base.paths import folder, writable_folder
from localrun.base.request import Json
from localrun.base.state_file import change_state, read_state
from localrun.tools.mcp.config import ServerEntry

FILE = "mcp-tools.json"
FRESH_SECONDS = 24 * 3600.0
MAX_KEPT = 2 << 20  # bytes of all lists; longer ones are asked for every time


def kept_list(entry: ServerEntry) -> Json | None:
    """The cached list of a server, at most a day old; None where there is none."""
    home = folder("cache")
    row = read_state(home / FILE).get(entry.name) if home else None
    if not isinstance(row, dict) or row.get("of") != _digest(entry):
        return None
    age = time.time() - row["at"] if isinstance(row.get("at"), int | float) else -1.0
    listed = row.get("listed")
    return listed if 0 <= age < FRESH_SECONDS and is_list(listed) else None


def keep_list(entry: ServerEntry, listed: Json) -> None:
    """Cache the list of a server, where the folder can be written."""
    if home := writable_folder("cache"):
        row = {"of": _digest(entry), "at": time.time(), "listed": listed}
        change_state(home / FILE, lambda rows: _bounded({**rows, entry.name: row}, entry.name))


def forget_list(name: str) -> None:
    """Remove the cached list of a server name."""
    if home := folder("cache"):
        change_state(home / FILE, lambda rows: {other: row for other, row in rows.items() if other != name})


def is_list(listed: Any) -> bool:
    """Whether the value is a valid list: tools with their parts, and notes."""
    if not isinstance(listed, dict) or not all(isinstance(listed.get(key), list) for key in ("tools", "notes")):
        return False
    return all(
        isinstance(tool, dict)
        and isinstance(tool.get("name"), str)
        and isinstance(tool.get("description"), str)
        and isinstance(tool.get("parameters"), dict)
        for tool in listed["tools"]
    ) and all(isinstance(note, str) for note in listed["notes"])


def _digest(entry: ServerEntry) -> str:
    """Hash of the entry as written: another command, URL or variable makes another server."""
    return hashlib.sha256(json.dumps(entry.as_json(), sort_keys=True).encode()).hexdigest()


def _bounded(rows: Json, newest: str) -> Json:
    """The rows that fit into the file, the newest among them if it fits alone."""
    kept: Json = {}
    left = MAX_KEPT
    for name in sorted(rows, key=lambda name: name != newest):
        size = len(json.dumps(rows[name]))
        if size <= left:
            kept[name] = rows[name]
            left -= size
    return kept

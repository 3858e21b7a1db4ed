"""`mcp.json`: the user's MCP servers, in the format of other programs."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import StorageError, UsageError
from localrun.base.files import write_whole
from localrun.base.lock import locked
from localrun.base.nearest import did_you_mean
from localrun.base.paths import folder, what_is_not_kept, writable_folder
from localrun.base.request import Json
from localrun.base.settings import LOCK
from localrun.base.small_file import read_small

FILE = "mcp.json"
MAX_BYTES = 1 << 20
MAX_SERVERS = 64
KEYS = ("mcpServers", "servers")  # the second is VS Code's
_HINT = "correct the file, or move it away"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HTTP_TYPES = ("http", "streamable-http", "streamableHttp", "streamable_http")


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """A server: a command to start, or a URL. Texts are as written, with `${VARIABLES}`."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_on: bool = True

    @property
    def target(self) -> str:
        """The command or the URL, in one line."""
        return self.url or " ".join((self.command, *self.args))

    def as_json(self) -> Json:
        """The object in the file."""
        if self.url:
            return {"url": self.url, **({"headers": dict(self.headers)} if self.headers else {})}
        rest = {"env": dict(self.env), "cwd": self.cwd}
        return {
            "command": self.command,
            "args": list(self.args),
            **{key: value for key, value in rest.items() if value},
        }


@dataclass(frozen=True, slots=True)
class ServerFile:
    """The servers of a file, and a sentence about each invalid entry."""

    servers: tuple[ServerEntry, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def usable(self) -> tuple[ServerEntry, ...]:
        """Servers that are switched on."""
        return tuple(entry for entry in self.servers if entry.is_on)

    def find(self, name: str) -> ServerEntry:
        """The server of this name. UsageError where there is none."""
        for entry in self.servers:
            if entry.name == name:
                return entry
        of_it = [problem for problem in self.problems if problem.startswith(f"{name}: ")]
        names = [entry.name for entry in self.servers]
        hint = (of_it[0] if of_it else "") or did_you_mean(name, names) or "`localrun mcp list` shows those there are"
        raise UsageError(f"there is no MCP server {name!r}", hint)


def config_file() -> Path | None:
    """Path of localrun's own mcp.json, which need not exist; None without a home folder."""
    home = folder("config")
    return home / FILE if home else None


def read_servers(path: Path | None = None) -> ServerFile:
    """The servers of a file, by default localrun's own. UsageError for an unreadable one."""
    data = _read(path or config_file())
    key = next((key for key in KEYS if key in data), KEYS[0])
    entries = data.get(key, {})
    if not isinstance(entries, dict):
        raise UsageError(f"{path or config_file()}: {key} is not an object", _HINT)
    servers, problems = [], []
    for number, (name, values) in enumerate(entries.items()):
        try:
            if number >= MAX_SERVERS:
                raise ValueError(f"more than {MAX_SERVERS} servers")
            servers.append(parse_entry(name, values))
        except ValueError as error:
            problems.append(f"{name}: {error}")
    return ServerFile(tuple(servers), tuple(problems))


def write_server(entry: ServerEntry) -> Path:
    """Add a server to localrun's file, or replace the one of that name. UsageError where that fails."""
    parse_name(entry.name)
    return _change(lambda entries: {**entries, entry.name: entry.as_json()})


def typed_server(
    name: str, words: Sequence[str], env: Mapping[str, str] = {}, headers: Mapping[str, str] = {}
) -> ServerEntry:
    """The server that a person typed: a URL, or what starts a program. UsageError where it is none, or one of this
    name is there."""
    if any(entry.name == name for entry in read_servers().servers):
        raise UsageError(f"there is an MCP server {name} already", f"`localrun mcp rm {name}` removes it")
    is_url = len(words) == 1 and words[0].startswith(("http://", "https://"))
    if (env and is_url) or (headers and not is_url):
        raise UsageError("--env is for a command, and --header is for a URL")
    program: Json = {"command": "".join(words[:1]), "args": [*words[1:]], "env": dict(env)}
    values: Json = {"url": words[0], "headers": dict(headers)} if is_url else program
    try:
        return parse_entry(name, values)
    except ValueError as error:
        raise UsageError(f"{name}: {error}", "name it first, then give its URL or the command that starts it") from None


def remove_server(name: str) -> Path:
    """Remove a server from localrun's file. UsageError where there is none of this name."""
    if name not in _read(config_file()).get(KEYS[0], {}):
        read_servers().find(name)
    return _change(lambda entries: {other: value for other, value in entries.items() if other != name})


def parse_name(name: str) -> str:
    """Check the name of a server. ValueError for one that could not be typed in a list."""
    if not _NAME.fullmatch(name):
        raise ValueError("a name has letters, digits, dots, - and _, at most 64 of them")
    return name


def parse_entry(name: str, values: object) -> ServerEntry:
    """Parse the object of a server. ValueError says what is wrong with it."""
    parse_name(name)
    if not isinstance(values, dict):
        raise ValueError("this is not an object")
    is_on = values.get("disabled") is not True and values.get("enabled") is not False
    kind = values.get("type", values.get("transport"))
    if kind == "sse":
        raise ValueError("SSE alone is the protocol of 2024: give the URL of its streamable HTTP, usually …/mcp")
    if kind not in (None, "stdio", *_HTTP_TYPES):
        raise ValueError(f"there is no type {kind!r}: it is stdio or http")
    if ("url" in values) == ("command" in values):
        raise ValueError("either a command or a url is needed")
    if "url" in values:
        url = _text(values, "url")
        if not re.match(r"https?://[^/\s]|\$\{", url):
            raise ValueError("the url does not begin with http:// or https://")
        return ServerEntry(name, url=url, headers=_texts(values, "headers"), is_on=is_on)
    args = values.get("args") or []
    if not isinstance(args, list) or not all(isinstance(one, str | int | float) for one in args):
        raise ValueError("args is not a list of texts")
    command, cwd = _text(values, "command"), _text(values, "cwd") if values.get("cwd") else ""
    if not command:
        raise ValueError("the command is empty")
    return ServerEntry(name, command, tuple(map(str, args)), _texts(values, "env"), cwd, is_on=is_on)


def _text(values: Json, key: str) -> str:
    value = values[key]
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{key} is not a text")
    return value


def _texts(values: Json, key: str) -> dict[str, str]:
    found = values.get(key) or {}
    if not isinstance(found, dict) or not all(isinstance(value, str | int | float) for value in found.values()):
        raise ValueError(f"{key} is not an object of texts")
    return {name: str(value) for name, value in found.items()}


def _change(change: Any) -> Path:
    home, path = writable_folder("config"), config_file()
    if home is None or path is None:
        raise UsageError(what_is_not_kept("config"))
    with locked(home / LOCK):
        data = _read(path)
        entries = data.get(KEYS[0], {})
        if not isinstance(entries, dict):
            raise UsageError(f"{path}: {KEYS[0]} is not an object", _HINT)
        try:
            write_whole(path, json.dumps({**data, KEYS[0]: change(entries)}, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def _read(path: Path | None) -> Json:
    try:
        data = read_small(path, MAX_BYTES) if path else b"{}"
        value = json.loads(data.decode("utf-8-sig") or "{}")
        json.dumps(value, ensure_ascii=False).encode()  # half a UTF-16 pair is no text
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", _HINT) from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply", _HINT) from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}", _HINT) from None
    if not isinstance(value, dict):
        raise UsageError(f"{path} is not a JSON object", _HINT)
    return value

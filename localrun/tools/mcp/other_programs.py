"""Other programs whose MCP servers can be imported, and their files. Nothing of theirs is changed or started."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.errors import NotFoundError, UsageError
from localrun.tools.mcp.config import ServerEntry, ServerFile, read_servers


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """A program and its file, which need not exist."""

    title: str
    path: Callable[[], Path]


def _claude() -> Path:
    name = "claude_desktop_config.json"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Claude" / name
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming")) / "Claude" / name
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "Claude" / name


OTHER_PROGRAMS = {
    "cursor": OtherProgram("Cursor", lambda: Path.home() / ".cursor" / "mcp.json"),
    "claude": OtherProgram("Claude Desktop", _claude),
    "lmstudio": OtherProgram("LM Studio", lambda: Path.home() / ".lmstudio" / "mcp.json"),
}


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """Servers that can be imported, with their source and sentences about invalid ones."""

    source: str
    servers: tuple[ServerEntry, ...]
    problems: tuple[str, ...]


def offers(source: str = "") -> list[ServerOffer]:
    """The servers of a program or a file, else of all programs, without those that localrun has.

    NotFoundError where the named one has no file, UsageError where its file cannot be read.
    """
    ours = {entry.name for entry in read_servers().servers}
    if source and source not in OTHER_PROGRAMS:
        return [_offer(source, Path(source).expanduser(), ours)]
    if source:
        return [_offer(OTHER_PROGRAMS[source].title, OTHER_PROGRAMS[source].path(), ours)]
    found = []
    for program in OTHER_PROGRAMS.values():
        try:
            found.append(_offer(program.title, program.path(), ours))
        except NotFoundError:
            continue
        except UsageError as error:
            found.append(ServerOffer(program.title, (), (error.message,)))
    return [offer for offer in found if offer.servers or offer.problems]


def _offer(title: str, path: Path, ours: set[str]) -> ServerOffer:
    if not path.is_file():
        names = ", ".join(OTHER_PROGRAMS)
        raise NotFoundError(f"{path} is not there", f"name a file, or one of {names}")
    file: ServerFile = read_servers(path)
    there = [f"{entry.name}: there is a server of this name already" for entry in file.servers if entry.name in ours]
    servers = tuple(entry for entry in file.servers if entry.name not in ours)
    return ServerOffer(title, servers, (*file.problems, *there))

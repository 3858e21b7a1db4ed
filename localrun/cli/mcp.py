"""`localrun mcp`: the MCP servers whose tools a chat can use."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from localrun.base.errors import LocalrunError, UsageError
from localrun.cli.completion import complete_word
from localrun.cli.console import agreed, can_ask, note, write_json, write_table
from localrun.cli.groups import JsonSwitch, command, switch
from localrun.cli.text_input import typed_text
from localrun.tools.mcp.config import ServerEntry, read_servers, remove_server, typed_server, write_server
from localrun.tools.mcp.listed import forget_list, kept_list
from localrun.tools.mcp.other_programs import OTHER_PROGRAMS, offers
from localrun.tools.mcp.servers import McpServers

mcp = typer.Typer(name="mcp", help="MCP servers, whose tools a chat can have: list, show, add, remove, import.")

_NAME = Annotated[str, typer.Argument(metavar="NAME", help="of the server")]


def list_servers(json: JsonSwitch = False) -> int:
    """List the servers in mcp.json without starting any."""
    file = read_servers()
    if json:
        write_json([as_row(entry) for entry in file.servers])
    elif file.servers:
        write_table([("NAME", "TOOLS", "SERVER"), *map(_columns, file.servers)])
    else:
        note("there are no MCP servers yet: `localrun mcp add` and `localrun mcp import` add some")
    _tell(file.problems)
    return 0


def show_server(name: _NAME, json: JsonSwitch = False) -> int:
    """Start a server and show its tools."""
    entry = read_servers().find(name)
    servers = McpServers([entry], use_kept=False)
    try:
        servers.wait()
        tools = servers.tools()
        problems = servers.problems()
    finally:
        servers.close()
    if json:
        shown = [{"name": one.name, "description": one.description, "parameters": one.parameters} for one in tools]
        write_json({**as_row(entry), "tools": shown, "problems": problems})
    elif tools:
        write_table([("TOOL", "DESCRIPTION"), *((one.name, _first_line(one.description)) for one in tools)])
    if problems and not tools:
        raise LocalrunError(problems[0], "`localrun mcp list` shows what is started")
    _tell(problems)
    return 0


def add_server(
    name: _NAME,
    target: Annotated[list[str], typer.Argument(metavar="URL | -- COMMAND…", help="a URL, or what starts the server")],
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="an environment variable for the server; repeatable"),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME:VALUE", help="a header for a URL; repeatable")
    ] = None,
) -> int:
    """Add a server to mcp.json. It is started when a chat needs it."""
    words = [typed_text(word) for word in target]
    path = write_server(typed_server(name, words, _pairs(env, "=", "--env"), _pairs(header, ":", "--header")))
    note(f"{name} added to {path}\n`localrun mcp show {name}` starts it and shows its tools")
    return 0


def remove_servers(
    names: Annotated[list[str], typer.Argument(metavar="NAME…")],
) -> int:
    """Remove servers from mcp.json."""
    for name in names:
        path = remove_server(name)
        forget_list(name)
        note(f"{name} removed from {path}")
    return 0


def import_servers(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROGRAM|FILE]",
            help=f"{', '.join(OTHER_PROGRAMS)}; without one, all of them",
            show_default=False,
            autocompletion=complete_word(*OTHER_PROGRAMS),
        ),
    ] = None,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="these servers only", show_default=False)
    ] = None,
    yes: Annotated[bool, switch("--yes", "do not ask")] = False,
) -> int:
    """Copy servers from Cursor, Claude Desktop or LM Studio, or from a file of that form. None is started."""
    found = offers(source or "")
    added, wanted = 0, set(names or ())
    for offer in found:
        _tell(f"{offer.source}: {problem}" for problem in offer.problems)
        for entry in offer.servers:
            if wanted and entry.name not in wanted:
                continue
            what = f"{entry.name} of {offer.source}: {entry.target}{_variables(entry)}"
            if not yes and not can_ask():
                raise UsageError(f"cannot ask without a terminal: {what}", "add --yes")
            if yes or agreed(f"Add {what}?"):
                path = write_server(entry)
                note(f"{entry.name} added to {path}")
                added += 1
    if missing := wanted - {entry.name for offer in found for entry in offer.servers}:
        raise UsageError(f"there is no such server to add: {', '.join(sorted(missing))}")
    if not added:
        note("nothing was added")
    return 0


def as_row(entry: ServerEntry) -> dict[str, Any]:
    """The fields of `mcp list --json`: names of variables and headers, without their values."""
    listed = kept_list(entry)
    return {
        "name": entry.name,
        "enabled": entry.is_on,
        "command": [entry.command, *entry.args] if entry.command else [],
        "url": entry.url,
        "env": list(entry.env),
        "headers": list(entry.headers),
        "n_tools": None if listed is None else len(listed["tools"]),
    }


def _columns(entry: ServerEntry) -> tuple[str, str, str]:
    n_tools = as_row(entry)["n_tools"]
    tools = "" if n_tools is None else str(n_tools)
    return entry.name, tools if entry.is_on else "off", entry.target + _variables(entry)


def _variables(entry: ServerEntry) -> str:
    names = ", ".join((*entry.env, *entry.headers))
    return f" (with {names})" if names else ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _pairs(given: list[str] | None, between: str, option: str) -> dict[str, str]:
    pairs = {}
    for one in given or ():
        name, found, value = typed_text(one).partition(between)
        if not found or not name:
            raise UsageError(f"{option} needs a name, {between} and a value: {name}")
        pairs[name] = value.strip() if between == ":" else value
    return pairs


def _tell(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        note(sentence)


for name, function in (
    ("list", list_servers),
    ("show", show_server),
    ("add", add_server),
    ("rm", remove_servers),
    ("import", import_servers),
):
    mcp.command(name)(command(function))

"""`localrun host`: servers that answer instead of a model on this machine, by the names that `--server` takes."""

import getpass
import os
import re
import sys
from dataclasses import replace
from typing import Annotated, Any

import typer

from localrun.base.errors import UsageError
from localrun.cli.console import can_ask, note, write_json, write_table
from localrun.cli.groups import JsonSwitch, command
from localrun.cli.text_input import typed_text
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import (
    added_server,
    change_endpoint,
    check_endpoint,
    read_endpoints,
    server_named,
    travels_in_the_clear,
)

host = typer.Typer(name="host", help="Servers for --server, by name: list, show, add, remove.")

_NAME = Annotated[str, typer.Argument(metavar="NAME", help="what you call the server")]
_SERVER = Annotated[str, typer.Argument(metavar="NAME|URL", help="a server that was added, or the address of one")]
_VARIABLE = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)


def list_hosts(json: JsonSwitch = False) -> int:
    """The servers that were added; none of them is asked."""
    known = read_endpoints()
    if json:
        write_json([as_row(endpoint) for endpoint in known])
    elif known:
        write_table([("NAME", "ADDRESS", "MODEL", "KEY"), *map(_columns, known)])
    else:
        note("there are no servers yet: `localrun host add NAME URL` adds one")
    return 0


def show_host(name: _SERVER, json: JsonSwitch = False) -> int:
    """Ask a server what it is, which models it offers, and what these can do; nothing is generated."""
    from localrun.cli.host_profile import show

    endpoint = server_named(typed_text(name))
    show(endpoint, as_row(endpoint), json)
    return 0


def add_host(
    name: _NAME,
    url: Annotated[str, typer.Argument(metavar="URL", help="of its API, such as http://lab:8000/v1")],
    key_env: Annotated[
        str, typer.Option("--key-env", metavar="VARIABLE", help="the environment variable that holds its key")
    ] = "",
    keyring: Annotated[
        bool, typer.Option("--keyring", help="keep its key in the system's keyring: asked for, or read from stdin")
    ] = False,
    model: Annotated[str, typer.Option("--model", "-m", metavar="NAME", help="the model there that answers")] = "",
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer", metavar="MODEL|FOLDER", help="counts its prompts where the server does not, from this disk"
        ),
    ] = "",
) -> int:
    """Add a server. Its key is read from the environment or the system's keyring each time, and kept in no file."""
    if keyring and key_env:
        raise UsageError("--keyring and --key-env both say where the key is", "leave one out")
    if key_env and not _VARIABLE.fullmatch(key_env):
        raise UsageError("--key-env needs the name of a variable, not the key itself", "such as LAB_KEY")
    taken = [endpoint.name for endpoint in read_endpoints()]
    try:
        key = _typed_key(name) if keyring else os.environ.get(key_env, "") if key_env else ""
        checked = check_endpoint(typed_text(name), typed_text(url), key, taken, typed_text(model))
    except ValueError as error:
        raise UsageError(str(error)) from None
    counts_by = _tokenizer_at(typed_text(tokenizer)) if tokenizer else ""
    change_endpoint(None, replace(checked, key_env=key_env, in_keyring=keyring, tokenizer=counts_by))
    if key_env and not key:
        note(f"{key_env} is not set yet: set it before you ask")
    elif key and travels_in_the_clear(checked):
        note("http: others on the network can read what you send, the key included")
    note(f"{checked.name} added\n`localrun host show {checked.name}` asks it for its models")
    return 0


def _tokenizer_at(named: str) -> str:
    """The name of a model, or the whole path of a folder, with a tokenizer that can be read. Raises LocalrunError."""
    from localrun.client.remote.tokenizer import text_at
    from localrun.hub.resolve import resolve

    found = resolve(named)
    text_at(found.path)
    return str(found.path.absolute()) if found.source == "path" else named


def _typed_key(name: str) -> str:
    """The key as typed where nobody sees it, else the first line of stdin. UsageError for none."""
    prompt = f"key of {name}: "
    key = (getpass.getpass(prompt) if can_ask() else sys.stdin.readline()).strip()
    if not key:
        raise UsageError("no key was given", "type it, or write it to stdin")
    return key


def remove_hosts(names: Annotated[list[str], typer.Argument(metavar="NAME…")]) -> int:
    """Forget servers."""
    for endpoint in [added_server(typed_text(name)) for name in names]:
        change_endpoint(endpoint, None)
        note(f"{endpoint.name} forgotten")
    return 0


def as_row(endpoint: Endpoint) -> dict[str, Any]:
    """The fields of `host list --json`: where the key comes from, never the key."""
    kept = "keyring" if endpoint.in_keyring else "endpoints.toml" if endpoint.key else None
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "model": endpoint.model or None,
        "tokenizer": endpoint.tokenizer or None,
        "key_from": endpoint.key_env or kept,
        "has_key": bool(endpoint.key),
    }


def _columns(endpoint: Endpoint) -> tuple[str, str, str, str]:
    row = as_row(endpoint)
    lacks = not endpoint.key
    missing = f"{endpoint.key_env}, which is not set" if endpoint.key_env and lacks else ""
    missing = "keyring, which does not give it" if endpoint.in_keyring and lacks else missing
    return endpoint.name, endpoint.url, endpoint.model, missing or row["key_from"] or "none"


for name, function in (("list", list_hosts), ("show", show_host), ("add", add_host), ("rm", remove_hosts)):
    host.command(name)(command(function))

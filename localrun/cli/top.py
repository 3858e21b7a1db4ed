"""`localrun top`: the requests of the running server."""

from typing import Annotated, Any

import typer

from localrun.cli.console import at_terminal, note, write_json, write_table
from localrun.cli.groups import JsonSwitch
from localrun.cli.open_app import is_plain
from localrun.server.monitor.client import MonitorClient, attached_names

_COLUMNS = ("NO", "CLIENT", "MODEL", "PHASE", "READ", "CACHED", "WRITTEN", "TOK/S", "LEFT")
_WIDEST = 40  # characters of a cell


def top(
    server: Annotated[
        str | None,
        typer.Option(
            "--server", metavar="NAME|URL", help="another one than the one that runs here", show_default=False
        ),
    ] = None,
    json: JsonSwitch = False,
) -> int:
    """Show the requests of the running server: who asks, how far each is, and why it waits."""
    client = _client_of(server) if server else MonitorClient()
    state = client.state()
    if not json and at_terminal() and not is_plain():
        from localrun_tui.themes import kept_theme
        from localrun_tui.top_app import TopApp

        return TopApp(client, kept_theme()).run_on_terminal()
    if json:
        write_json(state)
        return 0
    model = state.get("model")
    note(f"{model['name']} {model['precision']} is loaded" if isinstance(model, dict) else "no model is loaded")
    if attached := attached_names(state):
        note(f"attached: {', '.join(attached)}")
    rows = [row for row in state.get("requests", ()) if isinstance(row, dict)]
    if rows:
        write_table([_COLUMNS, *map(_cells, rows)])
    else:
        note("no request is under way")
    return 0


def _client_of(server: str) -> MonitorClient:
    """The server that was added under this name, with its key, else the one at this address."""
    from localrun.client.remote.endpoints import read_endpoints

    added = next((one for one in read_endpoints() if one.name == server), None)
    return MonitorClient(added.url, added.key) if added is not None else MonitorClient(server)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Format one row of the table; every value comes from a client and is cleaned."""
    read, prompt = row.get("read_tokens", 0), row.get("prompt_tokens", 0)
    rate, left = row.get("rate"), row.get("seconds_left")
    cells = (
        row.get("number"),
        row.get("client"),
        row.get("model"),
        row.get("waits_for") or row.get("phase"),
        f"{read}/{prompt}",
        row.get("cached_tokens"),
        row.get("written_tokens"),
        "" if rate is None else f"{rate:.1f}",
        "" if left is None else f"{left:,.0f} s",
    )
    return tuple(str(cell)[:_WIDEST] for cell in cells)

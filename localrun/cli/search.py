"""`localrun search`: models by a word, in the catalogue and on the hub."""

from typing import Annotated, Any

import typer

from localrun.backends.registry import usual_memory
from localrun.base.errors import HubError
from localrun.base.units import count
from localrun.cli.console import note, write_json, write_table
from localrun.cli.downloads import open_hub
from localrun.cli.groups import JsonSwitch, OfflineSwitch
from localrun.cli.text_input import typed_text
from localrun.hub.alternatives import nearest_runnable
from localrun.hub.catalogue import search_catalogue
from localrun.hub.remote import api
from localrun.hub.verdicts import catalogue_fit, rough_verdict, verdict_of
from localrun.model.capability import obstacle_of

Term = Annotated[str, typer.Argument(metavar="TERM", help="a name, a size, a task: qwen3, 4b, coder")]
RowLimit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=100, help="rows from the hub")]


def search(term: Term, limit: RowLimit = 20, offline: OfflineSwitch = False, json: JsonSwitch = False) -> int:
    """Find models: first those of the catalogue, then those of the hub."""
    budget = usual_memory().available
    rows = [_catalogue_row(name, budget) for name in search_catalogue(typed_text(term))]
    known = {row["repo"] for row in rows}
    with open_hub(offline) as http:
        if http.access.offline:
            note("offline: this is the catalogue; with a network the hub is searched too")
        else:
            try:
                rows += [_hub_row(found, budget) for found in api.search(http, term, limit) if found.repo not in known]
            except HubError as error:
                if not rows:
                    raise
                note(f"the hub was not searched: {error.message}\n  {error.hint}")
    if json:
        write_json(rows)
    elif rows:
        write_table([("NAME", "PARAMETERS", "CONTEXT", "LICENCE", "DOWNLOADS", "HERE", ""), *map(_columns, rows)])
        note("`localrun fit NAME` shows what fits this machine, `localrun pull NAME` downloads")
    else:
        note("nothing found: try fewer words")
    return 0


def _catalogue_row(name: str, budget: int) -> dict[str, Any]:
    model = search_catalogue("")[name]
    found, fit = catalogue_fit(name, budget)
    shape = found.shape if found else None
    obstacle = shape.obstacle if shape else ""
    return {
        "name": name,
        "repo": model.get("gguf") or model.get("safetensors"),
        "source": "catalogue",
        "n_params": shape.n_params if shape else None,
        "max_context": shape.config.max_context if shape else None,
        "licence": model["licence"],
        "downloads": None,
        "gated": None,
        "thinking": model.get("thinking", False),
        "sees": model.get("sees", False),
        "note": model["note"],
        "verdict": verdict_of(fit) if fit and not obstacle else None,
        "obstacle": obstacle or None,
        "instead": nearest_runnable(name, shape.n_params) if obstacle and shape else None,
    }


def _hub_row(found: api.FoundModel, budget: int) -> dict[str, Any]:
    obstacle = obstacle_of(found.arch)
    return {
        "name": found.repo,
        "repo": found.repo,
        "source": "hub",
        "n_params": found.n_params or None,
        "max_context": found.max_context or None,
        "licence": found.licence,
        "downloads": found.downloads,
        "gated": found.gated,
        "thinking": None,
        "sees": found.sees,
        "note": found.arch,
        "verdict": rough_verdict(found.n_params, budget) if found.n_params and not obstacle else None,
        "obstacle": obstacle or None,
        "instead": nearest_runnable(found.repo, found.n_params) if obstacle else None,
    }


def _columns(row: dict[str, Any]) -> tuple[str, ...]:
    cannot = f"cannot be run: {row['obstacle']}; the nearest that runs is {row['instead']}" if row["obstacle"] else ""
    seeing, gate = "sees images" if row["sees"] else "", "asks you to accept a licence" if row["gated"] else ""
    note_parts = [cannot or row["note"], seeing, gate]
    return (
        row["name"],
        count(row["n_params"]) if row["n_params"] else "",
        f"{row['max_context']:,}" if row["max_context"] else "",
        row["licence"],
        f"{row['downloads']:,}" if row["downloads"] is not None else "",
        {"fits": "fits", "tight": "tight", "disk": "from disk", "no": "no"}.get(row["verdict"], ""),
        "; ".join(part for part in note_parts if part),
    )

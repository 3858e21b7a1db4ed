"""`localrun rm`: show what a removal frees, ask once, and remove models from disk."""

from typing import Annotated

import typer

from localrun.base.errors import NotFoundError, UsageError
from localrun.base.units import gib
from localrun.cli.completion import complete_model, complete_precision
from localrun.cli.console import agreed, can_ask, note, write_json
from localrun.cli.groups import JsonSwitch, switch
from localrun.hub.disk.removal import Removal, plan_partials, plan_removal, require_one
from localrun.hub.disk.removal import remove as carry_out
from localrun.hub.disk.stored import StoredModel
from localrun.hub.names import parse_hub_name
from localrun.hub.remote.preview import find_on_hub
from localrun.hub.resolve import resolve_all

_Name = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="a name on disk; NAME:PRECISION for one of several",
        autocompletion=complete_model,
    ),
]
Yes = Annotated[bool, switch("--yes", "do not ask")]
_Precision = Annotated[
    str,
    typer.Option("--precision", metavar="NAME", help="precision: Q4_K_M …", autocompletion=complete_precision),
]


def remove(model: _Name, precision: _Precision = "auto", yes: Yes = False, json: JsonSwitch = False) -> int:
    """Remove a model, in all its precisions or one. Shows the files and the freed space, and asks once."""
    models, removal = _plan(model, precision)
    for path in removal.files:
        note(f"  {path}")
    for packed in removal.packed:
        note(f"  {packed.folder}: {gib(packed.nbytes)} of packed weights")
    for what in removal.left:
        note(what)
    if removal.in_use:
        note(f"in use by {removal.in_use}")
    what = ", ".join(sorted({one.precision or one.format for one in models})) or "unfinished downloads"
    question = f"{model} ({what}): {len(removal.files)} files, frees {gib(removal.freed)}"
    if not yes:
        if not can_ask():
            raise UsageError(f"cannot ask without a terminal: {question}", "add --yes")
        if not agreed(f"Remove {question}?"):
            note("nothing was removed")
            return 0
    was_default = carry_out(removal, models)
    note(f"removed {question}")
    if was_default:
        note("it was the default model: builtin answers now, `localrun config model NAME` chooses another")
    if json:
        write_json(
            {
                "model": model,
                "files": [str(path) for path in (*removal.files, *(packed.folder for packed in removal.packed))],
                "freed": removal.freed,
                "left": list(removal.left),
            }
        )
    return 0


def _plan(model: str, precision: str) -> tuple[list[StoredModel], Removal]:
    try:
        models = resolve_all(model, precision)
    except NotFoundError:
        wanted = find_on_hub(model, precision) or parse_hub_name(model)
        removal = plan_partials(wanted.repo) if wanted else None
        if removal is None or not removal.files:
            raise
        return [], removal
    require_one(models, model)
    return models, plan_removal(models)

"""`localrun list`: the models on disk."""

import time
from dataclasses import asdict
from typing import Any

from localrun.base.units import gib
from localrun.cli.console import note, write_json, write_table
from localrun.cli.groups import JsonSwitch
from localrun.hub.library import scan
from localrun.hub.stored import StoredModel


def list_models(json: JsonSwitch = False) -> int:
    """The models on disk: the built-in one, localrun's own folder and the Hugging Face cache."""
    models = scan()
    if json:
        write_json([as_row(model) for model in models])
        return 0
    header = ("NAME", "PRECISION", "SIZE", "USED", "PATH")
    write_table([header, *(_columns(model) for model in models)])
    if len(models) == 1:
        note("A .gguf file anywhere works too: localrun run -m FILE …")
    return 0


def as_row(model: StoredModel) -> dict[str, Any]:
    """The fields of `list --json`."""
    used = None if model.last_used is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(model.last_used))
    return {**asdict(model), "path": str(model.path), "last_used": used}


def _columns(model: StoredModel) -> tuple[str, ...]:
    used = "" if model.last_used is None else time.strftime("%Y-%m-%d", time.localtime(model.last_used))
    return model.name, model.precision, gib(model.bytes), used, str(model.path)

"""`localrun list`: the models on disk."""

import time
from typing import Annotated, Any

from localrun.base.units import gib
from localrun.cli.console import note, write_json, write_table
from localrun.cli.groups import JsonSwitch, switch
from localrun.hub.disk.aliases import without_aliases
from localrun.hub.disk.duplicates import find_duplicates, reclaimable
from localrun.hub.disk.library import scan, unfinished
from localrun.hub.disk.obstacles import sees_images, stored_obstacle
from localrun.hub.disk.stored import StoredModel
from localrun.hub.downloads.partial import is_alive

Duplicates = Annotated[bool, switch("--duplicates", "read files of equal size to find equal ones")]


def list_models(duplicates: Duplicates = False, json: JsonSwitch = False) -> int:
    """Models on disk: the built-in one, localrun's folder, the Hugging Face cache, LM Studio's and Ollama's."""
    models = without_aliases(scan())
    if json:
        write_json([as_row(model) for model in models])
        return 0
    header = ("NAME", "PRECISION", "SIZE", "SEES", "USED", "PATH")
    largest = max((model.bytes for model in models), default=0)
    write_table([header, *(_columns(model, largest) for model in models)])
    for model in models:
        if why := stored_obstacle(model):
            note(f"{model.name} {model.precision} cannot be run: {why}")
    for group in find_duplicates(models, read=duplicates):
        places = ", ".join(str(model.path) for model in group)
        note(f"the same bytes {len(group)} times, {gib(reclaimable(group))} too many: {places}")
    for journal, head, there in unfinished():
        state = "being downloaded" if is_alive(journal, head) else f"`localrun pull {head.repo}` goes on with it"
        note(f"unfinished: {head.file} of {head.repo}, {gib(there)} of {gib(head.size)}; {state}")
    if len(models) == 1:
        note("A .gguf file anywhere works too: localrun run -m FILE …")
    return 0


def as_row(model: StoredModel) -> dict[str, Any]:
    """The fields of `list --json`."""
    used = None if model.last_used is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(model.last_used))
    fields = {name: getattr(model, name) for name in ("name", "precision", "path", "bytes", "format", "source")}
    known = {"obstacle": stored_obstacle(model) or None, "sees": sees_images(model)}
    return {**fields, "path": str(model.path), "last_used": used, **known}


def _columns(model: StoredModel, largest: int) -> tuple[str, ...]:
    used = "" if model.last_used is None else time.strftime("%Y-%m-%d", time.localtime(model.last_used))
    return model.name, model.precision, gib(model.bytes, largest), "images" * sees_images(model), used, str(model.path)

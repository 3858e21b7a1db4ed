"""`localrun host show`: the engine of a server, its models, and what these can do."""

from dataclasses import asdict
from typing import Any

from localrun.base.request import Json
from localrun.cli.console import note, write_json, write_table
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.metrics import read_load
from localrun.client.remote.models import OfferedModel, list_models
from localrun.client.remote.probe import MOST_ASKED, ONE_BY_ONE, probe_all
from localrun.client.remote.profile import ABILITIES, EngineProfile
from localrun.diagnose.server_words import load_words


def show(endpoint: Endpoint, row: Json, json: bool) -> None:
    """Write the profile of a server; `row` are its fields in `host list`. Raises LocalrunError."""
    models = list_models(endpoint)
    profiles = probe_all(endpoint, models)
    first = profiles[0] if profiles else EngineProfile()
    load = read_load(endpoint, first.engine)
    asked = list(zip(models, profiles, strict=True))
    if json:
        about = {"engine": first.engine.name or None, "version": first.version or None}
        now = asdict(load) if load else None
        write_json({**row, **about, "load": now, "models": [_as_json(*one) for one in asked]})
        return
    note(f"{endpoint.url}: {first.title}")
    if not models:
        note("it lists no models: give the name of one with -m, if it has one")
        return
    write_table([("MODEL", "CONTEXT", "TOKENIZER", "CAN", "CANNOT"), *(_columns(*one) for one in asked)])
    for line in load_words(load) if load else ():
        note(f"now: {line}")
    if unsaid := first.named(None):
        note(f"not said: {unsaid}")
    if len(models) > MOST_ASKED and first.engine in ONE_BY_ONE:
        note(f"only the first {MOST_ASKED} models were asked for")


def _as_json(model: OfferedModel, profile: EngineProfile) -> dict[str, Any]:
    """A model; null is what the server does not say."""
    abilities = {name.lower(): profile.abilities.get(name) for name in ABILITIES}
    return {
        "name": model.id,
        "ctx": profile.ctx or None,
        "tokenizer": profile.tokenizer or None,
        "abilities": abilities,
    }


def _columns(model: OfferedModel, profile: EngineProfile) -> tuple[str, str, str, str, str]:
    ctx = f"{profile.ctx:,}" if profile.ctx else ""
    return model.id, ctx, profile.tokenizer, profile.named(True), profile.named(False)

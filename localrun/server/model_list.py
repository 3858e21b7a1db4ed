"""GET /v1/models: the models that can be requested."""

import asyncio

from localrun.base.request import Json
from localrun.hub.disk.stored import StoredModel
from localrun.server.models import model_id
from localrun.server.refusal import Refusal
from localrun.server.service import Service


async def list_models(service: Service) -> Json:
    """Every model on disk, by all its names; of the loaded one also its context."""
    stored = await asyncio.to_thread(service.models.listed)
    others = await asyncio.to_thread(service.models.aliases)
    named = [{**_row(service, one, stored), "id": name} for name, one in others.items()]
    return {"object": "list", "data": [*(_row(service, one, stored) for one in stored), *named]}


async def show_model(service: Service, name: str) -> Json:
    """One model, by any of its names. Raises Refusal."""
    choice = await asyncio.to_thread(service.models.find, name)
    if not isinstance(choice.stored, StoredModel):
        raise Refusal(404, f"there is no model called {name[:80]}", "model_not_found", "model")
    stored = await asyncio.to_thread(service.models.listed)
    return _row(service, choice.stored, stored)


def _row(service: Service, stored: StoredModel, listed: list[StoredModel]) -> Json:
    row: Json = {
        "id": model_id(stored, listed),
        "object": "model",
        "created": int(stored.last_used or 0),
        "owned_by": stored.source,
    }
    info = service.models.slot.info
    if info is not None and info.path == str(stored.path):
        row |= {"context_length": info.ctx, "max_model_len": info.ctx, "meta": {"n_ctx": info.ctx}}
    return row

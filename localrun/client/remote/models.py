"""List the models of a server."""

from dataclasses import field

from localrun.base.dataclass import dataclass
from localrun.base.errors import NotFoundError
from localrun.base.request import Json
from localrun.client.remote.endpoint import Endpoint, place_of
from localrun.client.remote.engines import UNKNOWN, RemoteEngine, engine_of
from localrun.client.remote.event_stream import count_of
from localrun.client.remote.http_errors import ServerFailedError, no_api
from localrun.client.remote.pages import get_json

MAX_MODELS = 10_000
_CONTEXT = ("max_model_len", "context_length", "context_window", "n_ctx")  # not that of the training


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model of a server, by the name it has there. `ctx` is 0 where unknown; `said` is its row in the list."""

    id: str
    ctx: int = 0
    engine: RemoteEngine = UNKNOWN
    said: Json = field(default_factory=dict, compare=False, repr=False)


def list_models(endpoint: Endpoint) -> tuple[OfferedModel, ...]:
    """The models of a server. Raises LocalrunError with the reason where it cannot list any."""
    status, answer = get_json(endpoint, "/models")
    place = place_of(endpoint)
    if status != 200:
        what = f"{place.host} has no list of models at {place.path}/models"
        raise NotFoundError(what, "the address of an API usually ends in /v1; or give the model's name yourself")
    rows = answer.get("data") if isinstance(answer, dict) else answer
    if not isinstance(rows, list):
        raise no_api(place)
    return tuple(_model(row) for row in rows[:MAX_MODELS] if isinstance(row, dict) and isinstance(row.get("id"), str))


def find_model(endpoint: Endpoint) -> OfferedModel:
    """The model to request; where the server lists none, or fails to, the name is taken as it is."""
    try:
        models = list_models(endpoint)
    except (NotFoundError, ServerFailedError):
        if not endpoint.model:
            raise
        return OfferedModel(endpoint.model)
    host = place_of(endpoint).host
    if not models and not endpoint.model:
        raise NotFoundError(f"{host} has no models", "load one there")
    found = [model for model in models if model.id == endpoint.model] if endpoint.model else [models[0]]
    if models and not found:
        some = ", ".join(model.id for model in models[:5]) + (" …" if len(models) > 5 else "")
        raise NotFoundError(f"{host} has no model {endpoint.model}", f"it has {some}")
    return found[0] if found else OfferedModel(endpoint.model)


def _model(row: Json) -> OfferedModel:
    sizes = {**(row["meta"] if isinstance(row.get("meta"), dict) else {}), **row}
    ctx = next((n for name in _CONTEXT if (n := count_of(sizes, name))), 0)
    return OfferedModel(row["id"], ctx, engine_of(row.get("owned_by")), row)

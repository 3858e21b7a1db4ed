"""What the screens about models hand to the app: a model, how precise, and how to hold its cache."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from localrun.base.request import KVCodecName

if TYPE_CHECKING:
    from localrun.client.endpoint import Endpoint
    from localrun.hub.stored import StoredModel


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model to load; of an endpoint only `stored` matters. `ctx` 0 is as much as memory holds, None what is set."""

    stored: "StoredModel | Endpoint"
    precision: str = ""
    ctx: int | None = None
    kv: KVCodecName = "auto"
    chat_id: str = ""  # the kept chat that is open meanwhile


def builtin() -> ModelChoice:
    """The model that ships with localrun."""
    from localrun.hub.catalogue import BUILTIN
    from localrun.hub.resolve import resolve

    stored = resolve(BUILTIN)
    return ModelChoice(stored, stored.precision)

"""What the screens about models hand to the app: a model, how precise, and how to hold its cache."""

from dataclasses import dataclass

from localrun.base.request import KVCodecName
from localrun.hub.stored import StoredModel


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server. `model` is the one to ask there; the key never shows in a repr."""

    name: str
    url: str
    key: str = ""
    model: str = ""

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, {self.url!r}, model={self.model!r})"


@dataclass(frozen=True, slots=True)
class Choice:
    """A model to load. `ctx` None: as much as memory holds; of an endpoint only `stored` matters."""

    stored: StoredModel | Endpoint
    precision: str = ""
    ctx: int | None = None
    kv: KVCodecName = "auto"

"""The choice of a model: one on disk, with its precision and its cache, or one on a server."""

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from localrun.base.adapter_choice import AdapterChoice, read_adapter
from localrun.base.dataclass import dataclass
from localrun.base.request import KVCodecName

if TYPE_CHECKING:
    from localrun.base.events import ModelInfo
    from localrun.chat.chat_settings import HeldWith
    from localrun.client.remote.endpoint import Endpoint
    from localrun.hub.disk.stored import StoredModel


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model to load; of an endpoint only `stored` matters. `ctx` 0: as much as memory holds, None: the setting."""

    stored: "StoredModel | Endpoint"
    precision: str = ""
    ctx: int | None = None
    kv: KVCodecName = "auto"
    window: int | None = None  # tokens that each layer sees in addition to the first block; None: the setting
    chat_id: str = ""  # the kept chat that is open
    adapters: tuple[AdapterChoice, ...] | None = None  # beside its weights; None: those of the chat that goes on


def builtin() -> ModelChoice:
    """The model that ships with localrun."""
    from localrun.hub.catalogue import BUILTIN
    from localrun.hub.resolve import resolve

    stored = resolve(BUILTIN)
    return ModelChoice(stored, stored.precision)


def named(model: str) -> ModelChoice:
    """A model on disk by its typed name: NAME or NAME:PRECISION. Raises NotFoundError, which lists what there is."""
    from localrun.hub.resolve import resolve

    stored = resolve(model)
    return ModelChoice(stored, stored.precision)


def first_choice(model: str | None, precision: str) -> ModelChoice | None:
    """The model that was named, on the command line or in LOCALRUN_MODEL, else the one last used, else the default one;
    None when there was none yet."""
    from localrun.base.settings import FILE_NAME, read_sources
    from localrun.hub.disk.library import scan
    from localrun.hub.resolve import resolve

    default, source = read_sources().get("model", (None, ""))
    used = [stored for stored in scan() if stored.last_used is not None]
    if used and model is None and source in ("", FILE_NAME):
        last = max(used, key=lambda stored: stored.last_used or 0.0)
        return ModelChoice(last, last.precision)
    name = model or default
    if name is None:
        return None
    stored = resolve(name, precision)
    return ModelChoice(stored, stored.precision)


def held_by(choice: ModelChoice, name: str = "") -> "HeldWith":
    """The model that answers in a chat, to be kept with it. `name` is what it calls itself, for a server whose first
    one answers."""
    from localrun.chat.chat_settings import HeldWith
    from localrun.hub.disk.stored import StoredModel

    stored = choice.stored
    if isinstance(stored, StoredModel):
        adapters = tuple(map(str, choice.adapters or ()))
        return HeldWith(stored.name, choice.precision, choice.ctx, choice.kv, choice.window, adapters=adapters)
    return HeldWith(stored.model or name, server=stored.name)


def choice_of(held: "HeldWith", present: ModelChoice | None = None) -> ModelChoice | None:
    """The model that a chat was held with; None where it is gone. Reads the disk.

    The `present` one may be of a path, by which no chat knows it: the one of that name.
    """
    from localrun.base.errors import NotFoundError, UsageError
    from localrun.client.remote.endpoints import server_named
    from localrun.hub.disk.stored import StoredModel
    from localrun.hub.resolve import resolve

    try:
        if held.server:
            return ModelChoice(replace(server_named(held.server), model=held.model))
        stored = present.stored if present is not None else None
        is_there = present is not None and (present.stored.name, present.precision) == (held.model, held.precision)
        if not isinstance(stored, StoredModel) or not is_there:
            stored = resolve(held.model, held.precision or "auto")
    except (NotFoundError, UsageError):  # or a folder of that name holds several
        return None
    codec = cast(KVCodecName, held.kv)
    adapters = tuple(map(read_adapter, held.adapters))
    return ModelChoice(
        stored, held.precision or stored.precision, held.ctx, codec, held.window, adapters=adapters or None
    )


def is_held_by(held: "HeldWith", choice: ModelChoice, info: "ModelInfo") -> bool:
    """Whether `choice`, loaded as `info`, is the model of the chat; of chats of earlier versions only its name is
    known. A context or codec that was left open is whatever it is, and one that was chosen is what came of it."""
    now = held_by(choice, held.model)
    if not held.precision and not held.server:
        return held.model == held_by(choice).model
    same_ctx = not held.ctx or held.ctx in (now.ctx, info.ctx)
    same_codec = held.kv in ("auto", now.kv, info.kv_codec)
    return same_ctx and same_codec and replace(held, ctx=now.ctx, kv=now.kv) == now

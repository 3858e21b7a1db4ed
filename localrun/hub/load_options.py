"""Load options of a model on disk, from the user's settings."""

from typing import cast

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.request import BackendName, KVCodecName, LoadOptions
from localrun.base.settings import Settings
from localrun.hub.disk.stored import StoredModel


def load_options(
    stored: StoredModel,
    settings: Settings,
    *,
    precision: str = "",
    prefix_cache: bool = True,
    disk_cache: bool = True,
    chat_id: str = "",
    adapters: tuple[AdapterChoice, ...] = (),
) -> LoadOptions:
    """Build the load options.

    `precision` is its name for the user where the file's differs. `disk_cache` stores the KV cache of chats and needs
    the prefix cache. `chat_id` is the stored chat that continues.
    """
    return LoadOptions(
        path=stored.path,
        name=stored.name,
        precision=precision or stored.precision,
        backend=cast(BackendName, settings.backend or "auto"),
        device=settings.device,
        threads=settings.threads,
        ctx=settings.ctx or None,
        kv=cast(KVCodecName, settings.kv or "auto"),
        window=settings.window,
        prefix_cache=prefix_cache,
        disk_cache=settings.disk_cache_bytes if disk_cache and prefix_cache else 0,
        packed_weights=settings.packed_weights_bytes,
        chat_id=chat_id,
        draft=settings.draft or "auto",
        adapters=adapters,
    )

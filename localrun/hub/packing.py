"""How much of the disk weights may take that memory has no room for: what a download leaves of it."""

from pathlib import Path

from localrun.base.paths import writable_folder
from localrun.hub.access import hub_cache
from localrun.storage.weight_store import WeightStore


def packing_room(download: int = 0) -> int:
    """Bytes, once `download` more have arrived; 0 where nothing can be written."""
    home = writable_folder("cache")
    if home is None:
        return 0
    on_one_disk = _device(home) == _device(hub_cache())
    return WeightStore(home).room() - (download if on_one_disk else 0)


def _device(path: Path) -> int:
    return next(place for place in (path, *path.parents) if place.exists()).stat().st_dev

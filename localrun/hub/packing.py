"""How much of the disk weights may take that memory has no room for: what a download leaves of it."""

from pathlib import Path

from localrun.base.paths import writable_folder
from localrun.cache.packed_weights import PACKED_FOLDER, room
from localrun.hub.access import hub_cache


def packing_room(download: int = 0) -> int:
    """Bytes, once `download` more have arrived; 0 where nothing can be written."""
    home = writable_folder("cache")
    if home is None:
        return 0
    on_one_disk = _device(home) == _device(hub_cache())
    return room(home / PACKED_FOLDER) - (download if on_one_disk else 0)


def _device(path: Path) -> int:
    return next(place for place in (path, *path.parents) if place.exists()).stat().st_dev

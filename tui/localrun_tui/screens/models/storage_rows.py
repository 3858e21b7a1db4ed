"""Rows of the storage screen: disk space taken, and how much can be freed. No widgets; call it on a thread."""

from collections.abc import Callable, Sequence
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.paths import folder
from localrun.hub.disk.aliases import without_aliases
from localrun.hub.disk.duplicates import find_duplicates, reclaimable
from localrun.hub.disk.library import scan, unfinished
from localrun.hub.disk.removal import discard
from localrun.hub.disk.stored import StoredModel
from localrun.hub.downloads.partial import is_alive
from localrun.storage.block_files import DISK_FOLDER
from localrun.storage.erase import erase_all
from localrun.storage.inventory import inventory
from localrun.storage.weight_store import WeightStore, erase_packed, total_bytes


@dataclass(frozen=True, slots=True)
class StorageRow:
    """`nbytes` on disk, `free` of them without losing anything but time. `clear` frees those and gives how many;
    None where it is done elsewhere, which `about` says."""

    name: str
    nbytes: int
    free: int
    about: str
    clear: Callable[[], int] | None = None


def storage_rows() -> list[StorageRow]:
    """Models, chats, and everything that is derived from them."""
    models = without_aliases(scan())
    return [_models(models), _copies(models), _packed(), _blocks(), _parts(), _chats()]


def _models(models: Sequence[StoredModel]) -> StorageRow:
    own = sum(model.bytes for model in models if model.source != "builtin")
    return StorageRow("Models", own, 0, f"{len(models)} of them: On disk, del removes one")


def _copies(models: Sequence[StoredModel]) -> StorageRow:
    extra = sum(reclaimable(group) for group in find_duplicates(models))
    about = "the same bytes in several places: On disk names them, del removes one" if extra else "there are none"
    return StorageRow("Copies of models", extra, extra, about)


def _packed() -> StorageRow:
    packed = WeightStore(_caches()).models()
    size = total_bytes(packed)
    about = "so that models start sooner; the next load packs them again"
    return StorageRow("Packed weights", size, size, about, (lambda: erase_packed(packed)) if packed else None)


def _blocks() -> StorageRow:
    root = _caches() / DISK_FOLDER
    size = sum(model.nbytes for model in inventory(root))
    about = "what was computed of chats; a chat reopens slower without it"
    return StorageRow("Computed of chats", size, size, about, (lambda: erase_all(root)) if size else None)


def _parts() -> StorageRow:
    left = [part for part in unfinished() if not is_alive(part[0], part[1])]
    size = sum(there for _, _, there in left)

    def clear() -> int:
        for journal, _, _ in left:
            discard(journal)
        return size

    return StorageRow("Downloads not finished", size, size, "Downloads goes on with them", clear if left else None)


def _chats() -> StorageRow:
    home = folder("chats")
    files = list(home.glob("*.jsonl")) if home and home.is_dir() else []
    size = sum(file.stat().st_size for file in files)
    return StorageRow("Chats", size, 0, f"{len(files)} of them; the list of chats deletes one")


def _caches() -> Path:
    return folder("cache") or Path("nowhere")

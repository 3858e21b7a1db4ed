"""Free disk space: the check before a download, errors of a full disk, and space for packed weights."""

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from localrun.base.errors import DiskFullError, HubError
from localrun.base.paths import writable_folder
from localrun.base.units import gib
from localrun.hub.disk.hf_cache import find_stored, repo_folder
from localrun.hub.downloads.partial import find_partials
from localrun.hub.network.access import hub_cache
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.storage.weight_store import WeightStore


def require_space(cache: Path, repo: RemoteRepo, files: Sequence[RemoteFile]) -> None:
    """Raise DiskFullError before the first byte when the disk cannot hold all missing files."""
    folder = repo_folder(cache, repo.name)
    allocated = {head.file: head.size for _, head, _ in find_partials(folder / "blobs")}
    missing = [file for file in files if find_stored(cache, repo, file) is None]
    needed = sum(file.size for file in missing if allocated.get(file.path) != file.size)
    place = next(path for path in (cache, *cache.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise _disk_full(cache, needed - free)


def _disk_full(cache: Path, missing: int) -> DiskFullError:
    more = f"{gib(missing)} ({missing:,} bytes) more are needed" if missing else "it filled up during the download"
    ways = "`localrun rm` removes a model, `localrun cache clear` what is cached"
    hint = f"free some space: {ways}; or set HF_HOME to a larger disk. What has arrived is kept"
    return DiskFullError(f"the disk of {cache} is full: {more}", hint)


@contextmanager
def disk_errors(cache: Path) -> Iterator[None]:
    """Turn errors of the file system into a HubError with advice."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
            raise _disk_full(cache, 0) from None
        what = error.strerror or type(error).__name__
        raise HubError(
            f"cannot write to {error.filename or cache}: {what}", "set HF_HOME to a folder you can write to"
        ) from None


def packing_room(download: int = 0) -> int:
    """Bytes of disk that packed weights may take after `download` more bytes; 0 where nothing can be written."""
    home = writable_folder("cache")
    if home is None:
        return 0
    on_one_disk = _device(home) == _device(hub_cache())
    return WeightStore(home).room() - (download if on_one_disk else 0)


def _device(path: Path) -> int:
    return next(place for place in (path, *path.parents) if place.exists()).stat().st_dev

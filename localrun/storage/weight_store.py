"""Packed weights on disk: a folder per model, a file per matrix.

The next start of a model maps them. Files of other models are removed, the least recently used first, where the disk is
short, and after a month. Those of the same model in an earlier version, and all of an earlier file format, are removed
at once.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.files import disk_usage, make_private
from localrun.base.lock import locked
from localrun.base.units import gib
from localrun.storage.label import Label, read_label, write_label
from localrun.storage.packed_file import FORM, LOCK, SUFFIX, DiskError, PackedFile

PACKED_FOLDER = "weights"  # in the folder of caches
MAX_AGE_SECONDS = 30 * 86400
LEAVING = ".leaving"  # the end of a folder's name while it is removed
SPARE = 1 << 30  # bytes of the disk that are left for other programs; of a smaller disk 1 / SPARE_PART:
SPARE_PART = 8
KEPT_PART = 8  # of what the disk has free, for weights that memory holds, too


@dataclass(frozen=True, slots=True)
class PackedModel:
    """Packed weights of one model on disk. `last_used` in seconds since 1970."""

    folder: Path
    label: Label
    n_files: int
    nbytes: int
    last_used: float


class WeightStore:
    """The packed weights of all models, below the cache folder. A missing folder holds none."""

    def __init__(self, caches: Path) -> None:
        self.root = caches / PACKED_FOLDER

    def models(self) -> list[PackedModel]:
        """Models with packed weights, the last used first."""
        found = []
        with suppress(OSError):
            for folder in self.root.iterdir():
                with suppress(OSError):
                    files = [path.stat() for path in folder.iterdir() if SUFFIX in path.name]
                    nbytes, used = sum(status.st_size for status in files), folder.stat().st_mtime
                    found.append(PackedModel(folder, read_label(folder), len(files), nbytes, used))
        return sorted(found, key=lambda model: -model.last_used)

    def models_at(self, paths: Collection[Path]) -> list[PackedModel]:
        """Packed weights of the models at these paths, in any precision."""
        names = {str(path) for path in paths}
        return [model for model in self.models() if model.label.path in names]

    def room(self) -> int:
        """Bytes of disk that packed weights may take, including those on disk."""
        disk = disk_usage(self.root)
        return disk.free + total_bytes(self.models()) - min(SPARE, disk.total // SPARE_PART)

    def check_room(self, nbytes: int) -> None:
        """Raise DiskError where so much could not lie here, even without any other model's."""
        if nbytes > max(0, self.room()):
            raise self._short_of_disk(nbytes)

    def limit(self, wanted: int | None) -> int:
        """Bytes for packed weights of models that fit in memory: `wanted`; None: a part of the free disk."""
        return self.room() // KEPT_PART if wanted is None else wanted

    def files(
        self, made_of: str, label: Label, sizes: Mapping[str, int], limit: int | None = None
    ) -> dict[str, PackedFile]:
        """A file for each matrix of `sizes` (bytes by name), with room on disk for the missing ones.

        `made_of` names everything that their bytes depend on; `limit` is the total for all models. Raises DiskError
        where there is not enough room.
        """
        made_of, label = f"{made_of}\nform {FORM}", replace(label, form=FORM)
        folder = self.root / hashlib.sha256(made_of.encode()).hexdigest()[:32]
        files = {name: _file(folder, name, nbytes, made_of) for name, nbytes in sizes.items()}
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            make_private(self.root)
            with locked(self.root / LOCK):
                folder.mkdir(exist_ok=True, mode=0o700)
                write_label(folder, label)
                os.utime(folder)
                missing = sum(file.n_bytes for file in files.values() if not file.is_there())
                self._make_room(folder, label, missing, limit)
        except OSError as error:
            raise DiskError(
                f"weights larger than memory cannot be kept in {self.root}: {error.strerror or type(error).__name__}",
                "set LOCALRUN_HOME to a folder on a disk that can be written to",
            ) from error
        return files

    def _make_room(self, own: Path, label: Label, missing: int, limit: int | None) -> None:
        """Remove packed weights of other models, as far as necessary. Raises DiskError."""
        there = self.models()
        others = [model for model in there if model.folder != own]
        disk = shutil.disk_usage(self.root)
        free = max(0, disk.free - min(SPARE, disk.total // SPARE_PART))
        if limit is not None:
            free = min(free, limit - total_bytes(there))
        if missing > max(0, free + total_bytes(others)):
            raise self._short_of_disk(missing)
        oldest = time.time() - MAX_AGE_SECONDS
        for model in reversed(others):
            is_useless = model.label.form != FORM or _is_earlier(model.label, label)
            if is_useless or model.last_used < oldest or free < missing:
                with suppress(OSError):
                    free += erase_packed([model])

    def _short_of_disk(self, nbytes: int) -> DiskError:
        where = f"the disk of {self.root}, where {gib(disk_usage(self.root).free)} are free"
        hint = "free some space, set LOCALRUN_HOME to a larger disk, or choose a smaller precision"
        return DiskError(f"{gib(nbytes)} of packed weights do not fit {where}", hint)


def total_bytes(models: Iterable[PackedModel]) -> int:
    return sum(model.nbytes for model in models)


def erase_packed(models: Collection[PackedModel]) -> int:
    """Remove packed weights and return their bytes; processes that mapped them continue, and one that is writing some
    ends that, since their folder is moved out of its way first. Raises OSError."""
    for model in models:
        gone = model.folder.with_name(f"{model.folder.name}{LEAVING}")
        with suppress(FileNotFoundError):  # another process erases them
            shutil.rmtree(gone, ignore_errors=True)
            model.folder.rename(gone)
            shutil.rmtree(gone)
    return total_bytes(models)


def _file(folder: Path, name: str, nbytes: int, made_of: str) -> PackedFile:
    seal = hashlib.sha256(f"{made_of}\n{name}\n{nbytes}".encode()).digest()
    return PackedFile(folder / f"{name}{SUFFIX}", nbytes, seal)


def _is_earlier(label: Label, now: Label) -> bool:
    """Whether these weights were packed from the same file by an earlier version, or before the file changed."""
    return bool(now.path) and (label.path, label.precision) == (now.path, now.precision)

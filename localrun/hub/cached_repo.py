"""One repository of the Hugging Face cache as it lies on the disk: which names lead to which bytes.

Anybody can write into that cache, so a link is believed only where it leads in one step to a blob of its repository.
"""

import os
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from localrun.base.small_file import open_regular
from localrun.hub.hf_cache import repo_folder
from localrun.hub.model_files import entries
from localrun.hub.partial import ABANDONED_SECONDS
from localrun.hub.safe_names import is_commit, is_etag

Bytes = Path | tuple[int, int]  # what a name leads to: the place of a blob, or device and inode of a hard link


class CachedRepo:
    """The files of one repository. Nothing behind a link to a folder is among them; such a link itself is."""

    def __init__(self, cache: Path, name: str) -> None:
        self.name = name
        self.folder = repo_folder(cache, name)
        self.snapshots = self.folder / "snapshots"
        self.named = list(files_below(self.snapshots))
        self.blobs = list(filter(_is_blob, entries(self.folder / "blobs")))

    def inside_snapshot(self, path: Path) -> str:
        """The name that a file has in its revision; empty for what is none."""
        return "/".join(path.relative_to(self.snapshots).parts[1:])

    def behind(self, named: Iterable[Path]) -> list[Path]:
        """The blobs that these names lead to."""
        wanted = set(map(leads_to, named))
        return [blob for blob in self.blobs if wanted & _ways_to(blob)]

    def foreign(self, named: Iterable[Path]) -> list[Path]:
        """Links among these names that lead to something that is there, and no blob of this repository."""
        places = {way for blob in self.blobs for way in _ways_to(blob)}
        return [path for path in named if path.is_symlink() and leads_to(path) not in places and path.exists()]

    def bookkeeping(self) -> list[Path]:
        """The cache's notes about revisions: which commit `main` was, and which files a revision lacks."""
        refs = [path for path in files_below(self.folder / "refs") if is_commit(_first_words(path))]
        return refs + [path for path in files_below(self.folder / ".no_exist") if path.lstat().st_size == 0]


def needed(cache: Path, going: Iterable[Path] = ()) -> set[Bytes]:
    """Blobs that any name in the cache leads to, those of files that are about to go left out."""
    gone = set(going)
    places = (path for repo in entries(cache) for path in files_below(repo / "snapshots"))
    return {leads_to(path) for path in places if path not in gone}


def unneeded(blobs: Iterable[Path], needed: set[Bytes]) -> list[Path]:
    return [blob for blob in blobs if not needed & _ways_to(blob)]


def freed_by(paths: Iterable[Path]) -> int:
    """Bytes that are free once these names are gone; a file with another name left keeps its own."""
    gone, files = Counter[tuple[int, int]](), {}
    for path in paths:
        info = path.lstat()
        if stat.S_ISREG(info.st_mode):
            gone[info.st_dev, info.st_ino] += 1
            files[info.st_dev, info.st_ino] = info
    return sum(info.st_size for key, info in files.items() if gone[key] >= info.st_nlink)


def files_below(place: Path) -> Iterator[Path]:
    """The files in a folder and in the folders of it, and the links; no link is followed."""
    if place.is_symlink():
        return
    for folder, folders, files in os.walk(place):
        yield from (Path(folder, name) for name in files)
        yield from (path for name in folders if (path := Path(folder, name)).is_symlink())


def leads_to(path: Path) -> Bytes:
    """One step: where a link points, its folder resolved and its last name not; for a file, which file it is."""
    if path.is_symlink():
        target = path.parent / os.readlink(path)
        return Path(os.path.realpath(target.parent), target.name)
    info = path.lstat()
    return info.st_dev, info.st_ino


def _ways_to(blob: Path) -> set[Bytes]:
    info = blob.lstat()
    return {Path(os.path.realpath(blob.parent), blob.name), (info.st_dev, info.st_ino)}


def _is_blob(path: Path) -> bool:
    """A file called by its hash, or what is left of another program's download of one."""
    etag, dot, ending = path.name.partition(".")
    if not is_etag(etag) or path.is_dir():
        return False
    return not dot or (ending.endswith("incomplete") and time.time() - path.lstat().st_mtime > ABANDONED_SECONDS)


def _first_words(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(64).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""

"""One repository of the Hugging Face cache on disk: which names lead to which bytes.

Any program can write into that cache, so a link counts only where it leads in one step to a blob of its repository.
"""

import os
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from localrun.base.small_file import open_regular
from localrun.hub.disk.hf_cache import repo_folder
from localrun.hub.disk.model_files import entries
from localrun.hub.downloads.partial import ABANDONED_SECONDS
from localrun.hub.safe_names import is_commit, is_etag

Bytes = Path | tuple[int, int]  # what a name leads to: the place of a blob, or device and inode of a hard link


class CachedRepo:
    """The files of one repository. A link to a folder is listed itself; nothing behind it is."""

    def __init__(self, cache: Path, name: str) -> None:
        self.name = name
        self.folder = repo_folder(cache, name)
        self.snapshots = self.folder / "snapshots"
        self.named = list(files_below(self.snapshots))
        self.blobs = list(filter(_is_blob, entries(self.folder / "blobs")))

    def inside_snapshot(self, path: Path) -> str:
        """Name of a file in its revision; empty for other files."""
        return "/".join(path.relative_to(self.snapshots).parts[1:])

    def behind(self, named: Iterable[Path]) -> list[Path]:
        """The blobs that these names lead to."""
        wanted = set(map(leads_to, named))
        return [blob for blob in self.blobs if wanted & _ways_to(blob)]

    def foreign(self, named: Iterable[Path]) -> list[Path]:
        """Links among these names that lead to an existing file outside the blobs of this repository."""
        places = {way for blob in self.blobs for way in _ways_to(blob)}
        return [path for path in named if path.is_symlink() and leads_to(path) not in places and path.exists()]

    def bookkeeping(self) -> list[Path]:
        """The cache's notes about revisions: which commit `main` was, and which files a revision lacks."""
        refs = [path for path in files_below(self.folder / "refs") if is_commit(_first_words(path))]
        return refs + [path for path in files_below(self.folder / ".no_exist") if path.lstat().st_size == 0]


def needed(cache: Path, going: Iterable[Path] = ()) -> set[Bytes]:
    """Blobs that a name in the cache leads to, other than the names in `going`."""
    gone = set(going)
    places = (path for repo in entries(cache) for path in files_below(repo / "snapshots"))
    return {leads_to(path) for path in places if path not in gone}


def unneeded(blobs: Iterable[Path], needed: set[Bytes]) -> list[Path]:
    return [blob for blob in blobs if not needed & _ways_to(blob)]


def freed_by(paths: Iterable[Path]) -> int:
    """Bytes that removing these names frees; a file that keeps another name frees none."""
    gone, files = Counter[tuple[int, int]](), {}
    for path in paths:
        info = path.lstat()
        if stat.S_ISREG(info.st_mode):
            gone[info.st_dev, info.st_ino] += 1
            files[info.st_dev, info.st_ino] = info
    return sum(info.st_size for key, info in files.items() if gone[key] >= info.st_nlink)


def files_below(place: Path) -> Iterator[Path]:
    """Files and links in a folder and its subfolders; links are not followed."""
    if place.is_symlink():
        return
    for folder, folders, files in os.walk(place):
        yield from (Path(folder, name) for name in files)
        yield from (path for name in folders if (path := Path(folder, name)).is_symlink())


def leads_to(path: Path) -> Bytes:
    """Target of one step: for a link its target with the folder resolved; for a file its device and inode."""
    if path.is_symlink():
        target = path.parent / os.readlink(path)
        return Path(os.path.realpath(target.parent), target.name)
    info = path.lstat()
    return info.st_dev, info.st_ino


def _ways_to(blob: Path) -> set[Bytes]:
    info = blob.lstat()
    return {Path(os.path.realpath(blob.parent), blob.name), (info.st_dev, info.st_ino)}


def _is_blob(path: Path) -> bool:
    """Whether a file is named by its hash, or is an abandoned download of one by another program."""
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

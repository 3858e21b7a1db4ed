"""Layout of the Hugging Face cache, shared with other programs.

<cache>/models--org--name/ blobs/<etag> · refs/main (a commit) · snapshots/<commit>/<path> -> ../../blobs/<etag>
"""

import os
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from localrun.base.files import replace_file
from localrun.base.small_file import read_small
from localrun.hub.disk.own_files import replace_own
from localrun.hub.disk.safe_remove import refuse_links
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.hub.safe_names import is_etag

MAX_REF_BYTES = 1 << 10


def repo_folder(cache: Path, repo: str) -> Path:
    return cache / f"models--{repo.replace('/', '--')}"


def blob_path(cache: Path, repo: str, file: RemoteFile) -> Path:
    return repo_folder(cache, repo) / "blobs" / file.etag


def snapshot_path(cache: Path, repo: RemoteRepo, file: RemoteFile) -> Path:
    return repo_folder(cache, repo.name) / "snapshots" / repo.commit / file.path


def find_stored(cache: Path, repo: RemoteRepo, file: RemoteFile) -> Path | None:
    """Path of the file in the cache, from any program: already linked, or a blob of another revision."""
    paths = (snapshot_path(cache, repo, file), blob_path(cache, repo.name, file))
    return next((path for path in paths if _is_stored(path, file)), None)


def link(cache: Path, repo: RemoteRepo, file: RemoteFile) -> Path:
    """Link the stored blob under its name in the snapshot; returns that path. Safe for two processes at once."""
    blob, path = blob_path(cache, repo.name, file), snapshot_path(cache, repo, file)
    if _is_stored(path, file):
        return path
    refuse_links(repo_folder(cache, repo.name), path)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{uuid.uuid4().hex}.localrun")
    try:
        _point(fresh, blob)
        replace_file(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    return path


def _is_stored(path: Path, file: RemoteFile) -> bool:
    """Whether `path` leads to these bytes, by the size and name of the blob behind it."""
    try:
        blob = path.resolve(strict=True)
        return blob.stat().st_size == file.size and (blob.name == file.etag or not is_etag(blob.name))
    except (OSError, RuntimeError):  # a link to itself
        return False


def _point(path: Path, blob: Path) -> None:
    """Create a relative link; a hard link or a copy where links need special rights (Windows)."""
    try:
        path.symlink_to(os.path.relpath(blob, path.parent))
    except (OSError, NotImplementedError):
        try:
            os.link(blob, path)
        except OSError:
            shutil.copyfile(blob, path)


def remember_commit(cache: Path, repo: RemoteRepo, revision: str = "main") -> str:
    """Store which commit `revision` is; returns the commit that it was before, if another."""
    ref = repo_folder(cache, repo.name) / "refs" / revision
    before = ""
    with suppress(OSError, UnicodeDecodeError):
        before = read_small(ref, MAX_REF_BYTES).decode().strip()
    if before != repo.commit:
        refuse_links(repo_folder(cache, repo.name), ref)
        ref.parent.mkdir(parents=True, exist_ok=True)
        replace_own(ref, repo.commit.encode())
    return "" if before == repo.commit else before


def missing_bytes(cache: Path, repo: RemoteRepo, files: Iterable[RemoteFile]) -> int:
    """Bytes still to download."""
    return sum(file.size for file in files if find_stored(cache, repo, file) is None)

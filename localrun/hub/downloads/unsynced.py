"""Complete files that may not be on the disk yet.

A file is renamed into place as soon as its hash is right; the disk takes a while longer to write it. Until then the
journal stays beside the file as a mark. It names the boot during which the file was written: in the same boot
everything can be read, from memory if not from the disk. After another boot every chunk is compared with the journal
before localrun uses the file, and lost chunks turn it into an unfinished download again. Without a usable journal the
hash of the whole file decides. Other programs see an ordinary file, and may remove or replace it.
"""

import os
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from localrun.base.errors import HubError, NotFoundError
from localrun.base.files import replace_file, sync_folder
from localrun.base.small_file import open_regular
from localrun.hub.disk.cached_repo import files_below, leads_to
from localrun.hub.disk.gone import stored_is_gone
from localrun.hub.disk.model_files import entries
from localrun.hub.disk.own_files import open_own
from localrun.hub.disk.stored import StoredModel, shards_of
from localrun.hub.downloads.journal import (
    CHUNK_BYTES,
    begin_hash,
    boot_id,
    checksums,
    journals_of,
    n_chunks_of,
    part_of,
    read_chunks,
    read_head,
    read_lines,
    replace_journal,
)
from localrun.hub.downloads.partial import remove_partial, write_out
from localrun.hub.safe_names import is_etag

DELAY_SECONDS = 2.0  # a command that ends sooner leaves it to the next one, so that none waits for the disk
_READ_BYTES = 1 << 20

_waiting: dict[Path, threading.Timer] = {}
_lock = threading.Lock()


def require_whole(model: StoredModel) -> None:
    """Raise NotFoundError when the model is gone, or a power cut has damaged it, which `pull` repairs."""
    whole = [model.path, *filter(Path.is_file, entries(model.path))]
    for path in (shards_of(model.path) or [model.path]) if model.format == "gguf" else whole:
        blob = path.resolve()
        if recover(blob):
            name = f"{_repo_of(blob)}:{(model.is_main and model.precision) or model.path.name}"
            raise NotFoundError(
                f"{model.name} is damaged: the machine stopped before the disk had all of it",
                f"`localrun pull {name}` fetches the missing part and keeps the rest",
            )
        if not path.exists():
            raise stored_is_gone(model, path)
        write_out_later(blob)


def recover(blob: Path) -> int:
    """Check a complete file after a restart; returns the bytes that were lost, which `pull` fetches again.

    HubError when the file cannot be read. Safe for several processes at once.
    """
    lost = 0
    try:
        for mark in _marks(blob):
            head = read_head(mark)
            if head is not None and head.boot == boot_id():
                continue
            if chunks := _lost_chunks(blob, mark):
                lost += _take_back(blob, mark, chunks)
            else:
                write_out_now(blob)
    except FileNotFoundError:  # somebody removed it, or has taken it back
        return lost
    except OSError as error:
        what = error.strerror or type(error).__name__
        raise HubError(
            f"cannot check {blob}: {what}", "check the disk, or remove the model and pull it again"
        ) from None
    return lost


def sync_linked(blob: Path, path: Path) -> None:
    """Write `blob` out in the background, after it was linked as `path`.

    A copy at `path`, which has no mark, is written out at once.
    """
    if path.is_symlink():
        write_out_later(blob)
    elif _marks(blob):
        write_out(path)
        write_out_now(blob)


def write_out_later(blob: Path) -> None:
    """Write `blob` to disk in the background, then remove its mark. A process that ends leaves this to the next."""
    if not _marks(blob):
        return
    with _lock:
        if blob not in _waiting:
            timer = threading.Timer(DELAY_SECONDS, _write_out_waiting, (blob,))
            timer.daemon = True
            _waiting[blob] = timer
            timer.start()


def write_out_now(blob: Path) -> None:
    """Write `blob` to disk, then remove its mark. A file that the disk refuses is checked before its next use."""
    marks = _marks(blob)
    try:
        write_out(blob)
        sync_folder(blob.parent)
    except (FileNotFoundError, PermissionError):
        return
    except OSError:
        for mark in marks:
            _distrust(mark)
        return
    for mark in marks:
        mark.unlink(missing_ok=True)


def _write_out_waiting(blob: Path) -> None:
    try:
        with suppress(OSError):
            write_out_now(blob)
    finally:
        with _lock:
            _waiting.pop(blob, None)


def _marks(blob: Path) -> list[Path]:
    """Journals of a complete file. A journal beside a partial file belongs to that one."""
    if blob.parent.name != "blobs" or not is_etag(blob.name):
        return []
    return [journal for journal in journals_of(blob) if not part_of(journal).exists()]


def _distrust(mark: Path) -> None:
    """Mark the file to be checked in any boot."""
    head = read_head(mark)
    if head is not None:
        replace_journal(mark, replace(head, boot=""), read_lines(mark, n_chunks_of(head.size)))


def _lost_chunks(blob: Path, mark: Path) -> list[int]:
    """Chunks of a file that were lost. The journal may be wrong; the hash, which is the file's name, cannot be."""
    head = read_head(mark)
    n_chunks = n_chunks_of(blob.stat().st_size if head is None else head.size)
    known = read_chunks(mark, n_chunks)
    now = dict(enumerate(checksums(blob)))
    lost = [chunk for chunk in range(n_chunks) if chunk not in known or known[chunk] != now.get(chunk)]
    return lost if lost and _hash_of(blob) != blob.name else []


def _hash_of(path: Path) -> str:
    digest = begin_hash(path.name, path.stat().st_size)
    with open_regular(path) as file:
        while data := file.read(_READ_BYTES):
            digest.update(data)
    return str(digest.hexdigest())


def _take_back(blob: Path, mark: Path, lost: list[int]) -> int:
    """Turn a damaged file into an unfinished download; returns the bytes to fetch.

    Several processes may do so at once: the rename comes last, since another process may then continue the download.
    """
    head = read_head(mark)
    n_bytes = blob.stat().st_size if head is None else min(head.size, len(lost) * CHUNK_BYTES)
    with suppress(FileNotFoundError):  # another process has done it
        with open_own(mark, "r+b") as lines:
            lines.seek(0, os.SEEK_END)
            lines.write(b"\n" + b"".join(b"%d -1\n" % chunk for chunk in lost))
        os.utime(mark, (0, 0))
        for path in files_below(blob.parent.parent / "snapshots"):
            if path.is_symlink() and leads_to(path) == blob and mark.exists():
                path.unlink(missing_ok=True)
        if mark.exists():
            replace_file(blob, part_of(mark))
        if head is None:
            remove_partial(mark)
    return n_bytes


def _repo_of(blob: Path) -> str:
    kind, *names = blob.parent.parent.name.split("--")
    return "/".join(names) if kind == "models" else ""

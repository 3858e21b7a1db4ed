"""Files that are complete, and that the disk may not have yet.

A file is put in its place as soon as its hash is right; the disk takes a while longer. Until it has everything, the
journal stays beside the file as a mark. It names the boot of the machine that the file was written in: in this one all
is there to read, from memory if not from the disk. After another boot every chunk is compared with the journal before
anybody here uses the file, and what was lost makes it an unfinished download again. Without a journal that makes sense
the hash of the whole decides. Other programs see an ordinary file, and may remove or replace it.
"""

import os
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from localrun.base.errors import HubError, NotFoundError
from localrun.base.files import replace_file, sync_folder
from localrun.base.small_file import open_regular
from localrun.hub.cached_repo import files_below, leads_to
from localrun.hub.journal import (
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
from localrun.hub.model_files import entries
from localrun.hub.own_files import open_own
from localrun.hub.partial import remove_partial, write_out
from localrun.hub.safe_names import is_etag
from localrun.hub.stored import StoredModel, shards_of

DELAY_SECONDS = 2.0  # a command that ends sooner leaves it to the next one, so that none waits for the disk
_READ_BYTES = 1 << 20

_waiting: dict[Path, threading.Timer] = {}
_lock = threading.Lock()


def require_whole(model: StoredModel) -> None:
    """Before a model is used: NotFoundError when a power cut has taken a part of it, which `pull` fetches again."""
    one = model.format == "gguf"
    for path in shards_of(model.path) or [model.path] if one else filter(Path.is_file, entries(model.path)):
        blob = path.resolve()
        if recover(blob) or not path.exists():
            name = f"{_repo_of(blob)}:{(model.is_main and model.precision) or model.path.name}"
            raise NotFoundError(
                f"{model.name} is not whole: the machine went down before the disk had all of it",
                f"`localrun pull {name}` fetches what is missing and keeps the rest",
            )
        write_out_later(blob)


def recover(blob: Path) -> int:
    """See that a complete file is still what it was; gives the bytes that were lost, and it is unfinished again then.

    HubError when it cannot be read. Safe to do by several processes at once.
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
        raise HubError(f"cannot check {blob}: {what}", "look into the disk, or remove the model and pull it") from None
    return lost


def sync_linked(blob: Path, path: Path) -> None:
    """After `blob` was linked as `path`: let the disk take its time; but not where `path` is a copy without a mark."""
    if path.is_symlink():
        write_out_later(blob)
    elif _marks(blob):
        write_out(path)
        write_out_now(blob)


def write_out_later(blob: Path) -> None:
    """Wait for the disk in the background, and drop the mark then. A process that ends leaves it to the next one."""
    if not _marks(blob):
        return
    with _lock:
        if blob not in _waiting:
            timer = threading.Timer(DELAY_SECONDS, _write_out_waiting, (blob,))
            timer.daemon = True
            _waiting[blob] = timer
            timer.start()


def write_out_now(blob: Path) -> None:
    """Wait until the disk has all of `blob`, and drop its mark. One that the disk refuses is checked before its use."""
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
    """The journals of a file that is complete. A journal with a part beside it belongs to that."""
    if blob.parent.name != "blobs" or not is_etag(blob.name):
        return []
    return [journal for journal in journals_of(blob) if not part_of(journal).exists()]


def _distrust(mark: Path) -> None:
    """Have the file checked whatever the boot."""
    head = read_head(mark)
    if head is not None:
        replace_journal(mark, replace(head, boot=""), read_lines(mark, n_chunks_of(head.size)))


def _lost_chunks(blob: Path, mark: Path) -> list[int]:
    """The chunks of a file that are not what they were. The journal may be wrong; the hash, the file's name, is not."""
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
    """Make a damaged file an unfinished download; gives the bytes to fetch.

    Several processes may do it at once: renaming the file comes last, since another one may go on with it from there.
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

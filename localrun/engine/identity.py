"""Which weights these are: by every byte of their files, so that nothing computed with others is taken for theirs.

The hub's cache names files by their sha256. Others are read through once, beside the load that reads them anyway, and
what was found is remembered by size, times and inode: a file that was only touched is read again, and is the same.
"""

import hashlib
import json
import os
import re
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from localrun.base.files import remove_unfinished, write_whole
from localrun.base.paths import writable_folder
from localrun.formats.weights import WeightFiles

CHUNK_BYTES = 1 << 20
SETTLED_SECONDS = 2.0  # since the last change of a file, before its times tell the next one: clocks of disks are coarse
REMEMBERED = 256  # files
FILE = "weights.json"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BESIDE = ("config.json", "tokenizer.json", "tokenizer_config.json")  # tell how ids come about

Stamp = list[int]


class Identity:
    """Found out on a thread of its own from the moment it is made."""

    def __init__(self, source: WeightFiles) -> None:
        self._found = ""
        self._files = _files_of(source)
        self._thread = threading.Thread(target=self._look, name="localrun-identity", daemon=True)
        self._thread.start()

    def result(self) -> str:
        """Empty where a file cannot be read, or changed while it was."""
        self._thread.join()
        return self._found

    def _look(self) -> None:
        with suppress(OSError):
            contents = [content_of(file) for file in self._files]
            if all(contents):
                self._found = _of_all(contents)


def known_identity(source: WeightFiles) -> str:
    """What an Identity would find, where nothing has to be read through for that; else empty."""
    try:
        known = _read_known()
        contents = [_known_content(file.resolve(), known) for file in _files_of(source)]
    except OSError:
        return ""
    return _of_all(contents) if all(contents) else ""


def content_of(file: Path) -> str:
    """What stands for the bytes of a file; empty where they changed meanwhile. Raises OSError."""
    real = file.resolve()
    if known := _known_content(real, _read_known()):
        return known
    before, now, found = _stamp(real), time.time_ns(), checksum(real)
    if _stamp(real) != before:
        return ""
    if now - max(before[1:3]) > SETTLED_SECONDS * 1e9:
        _remember(str(real), before, found)
    return found


def _files_of(source: WeightFiles) -> list[Path]:
    """Those of weights, and of a folder those that tell how ids come about."""
    beside = _BESIDE if source.path.is_dir() else ()
    return sorted(source.files) + [path for name in beside if (path := source.path / name).is_file()]


def _of_all(contents: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _known_content(real: Path, known: Mapping[str, list[object]]) -> str:
    """By its name in the hub's cache, or as it was found before; else empty. Raises OSError."""
    if _SHA256.fullmatch(real.name):
        return real.name
    stamp, found = known.get(str(real), ([], ""))
    return str(found) if stamp == _stamp(real) else ""


def checksum(file: Path) -> str:
    """A hash of the CRC-32 of every chunk: sums tell changes, and are as fast as reading is."""
    hashed, buffer = hashlib.sha256(), memoryview(bytearray(CHUNK_BYTES))
    with open(file, "rb", buffering=0) as opened:
        while n := opened.readinto(buffer):
            hashed.update(n.to_bytes(4, "little") + zlib.crc32(buffer[:n]).to_bytes(4, "little"))
    return hashed.hexdigest()


def _stamp(file: Path) -> Stamp:
    """Size, times and inode: whoever writes to a file changes one of them, even where the time was put back."""
    status = os.stat(file)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _read_known() -> dict[str, list[object]]:
    folder = writable_folder("cache")
    with suppress(OSError, ValueError):
        read = json.loads((folder / FILE).read_text("utf-8")) if folder is not None else None
        if isinstance(read, dict):
            return {path: row for path, row in read.items() if isinstance(row, list) and len(row) == 2}
    return {}


def _remember(path: str, stamp: Stamp, found: str) -> None:
    folder = writable_folder("cache")
    if folder is None:
        return
    known: dict[str, Iterable[object]] = {**_read_known()}
    known.pop(path, None)
    kept = [*known.items()][-REMEMBERED:]
    remove_unfinished(folder)
    with suppress(OSError):
        write_whole(folder / FILE, json.dumps({**dict(kept), path: [stamp, found]}))

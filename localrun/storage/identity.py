"""Identity of weights by every byte of their files, so that nothing computed with other weights is reused.

The Hugging Face cache names files by their sha256. Other files are read through once, beside the load that reads them
anyway, and the result is stored by size, times and inode. A file that was only touched is read again and keeps its
identity.
"""

import hashlib
import re
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from localrun.base.errors import LocalrunError
from localrun.base.paths import writable_folder
from localrun.base.state_file import change_state, read_state
from localrun.formats.files import Stamp, stamp_at
from localrun.formats.weights import WeightFiles

CHUNK_BYTES = 1 << 20
SETTLED_SECONDS = 2.0  # since the last change of a file, before its times tell the next one: clocks of disks are coarse
REMEMBERED = 256  # files
FILE = "weights.json"
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Identity:
    """Compute the identity on a thread of its own, from construction on."""

    def __init__(self, source: WeightFiles) -> None:
        self._found = ""
        self._files = _files_of(source)
        self._thread = threading.Thread(target=self._look, name="localrun-identity", daemon=True)
        self._thread.start()

    def result(self) -> str:
        """The identity; empty where a file cannot be read, or may have changed since it was opened."""
        self._thread.join()
        return self._found

    def _look(self) -> None:
        with suppress(OSError, LocalrunError):
            contents = [content_of(file, stamp) for file, stamp in self._files]
            if all(contents):
                self._found = _of_all(contents)


def known_identity(source: WeightFiles) -> str:
    """The identity where no file has to be read through for it; else empty."""
    try:
        known = _read_known()
        contents = [_known_content(file.resolve(), stamp, known) for file, stamp in _files_of(source)]
    except (OSError, LocalrunError):
        return ""
    return _of_all(contents) if all(contents) else ""


def content_of(file: Path, opened: Stamp) -> str:
    """Name for the bytes that a file had when it was opened; empty where it may have changed since.

    Raises OSError or LocalrunError.
    """
    real = file.resolve()
    if known := _known_content(real, opened, _read_known()):
        return known
    now, found = time.time_ns(), checksum(real)
    if not _is_still(real, opened):
        return ""
    if now - max(opened.exact[1:3]) > SETTLED_SECONDS * 1e9:
        _remember(str(real), opened, found)
    return found


def _files_of(source: WeightFiles) -> list[tuple[Path, Stamp]]:
    """Files of weights, and files that determine token ids, as they were opened."""
    return [*sorted(source.stamps.items()), *source.beside.items()]


def _of_all(contents: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _known_content(real: Path, opened: Stamp, known: Mapping[str, list[object]]) -> str:
    """Content by its name in the Hugging Face cache, or as stored before; else empty.

    Raises OSError or LocalrunError.
    """
    if not _is_still(real, opened):
        return ""
    if _SHA256.fullmatch(real.name):
        return real.name
    stamp, found = known.get(str(real), ([], ""))
    return str(found) if stamp == list(opened.exact) else ""


def _is_still(real: Path, opened: Stamp) -> bool:
    """Whether a file is unchanged since it was opened, by size, times and inode.

    A write changes one of them even where the time was set back. Where clocks are coarse, a file that was just written
    does not count as unchanged.
    """
    return opened.is_settled and stamp_at(real).exact == opened.exact


def fingerprint(*parts: object) -> str:
    """Hash of everything that blocks or packed weights depend on; those of another fingerprint are not used.

    Blocks depend on the weights' identity, config, backend, instruction set, numerics, codecs and precision. Parts
    count by their repr, which names all fields of a dataclass.
    """
    hashed = hashlib.sha256()
    for part in map(repr, parts):
        hashed.update(len(part).to_bytes(8, "little") + part.encode())
    return hashed.hexdigest()


def checksum(file: Path) -> str:
    """Hash of the CRC-32 of every chunk, which detects changes at the speed of reading."""
    hashed, buffer = hashlib.sha256(), memoryview(bytearray(CHUNK_BYTES))
    with open(file, "rb", buffering=0) as opened:
        while n := opened.readinto(buffer):
            hashed.update(n.to_bytes(4, "little") + zlib.crc32(buffer[:n]).to_bytes(4, "little"))
    return hashed.hexdigest()


def _read_known() -> dict[str, list[object]]:
    folder = writable_folder("cache")
    return _rows(read_state(folder / FILE)) if folder is not None else {}


def _rows(known: Mapping[str, object]) -> dict[str, list[object]]:
    return {path: row for path, row in known.items() if isinstance(row, list) and len(row) == 2}


def _remember(path: str, stamp: Stamp, found: str) -> None:
    folder = writable_folder("cache")
    if folder is None:
        return

    def with_this(known: Mapping[str, object]) -> dict[str, object]:
        others = [row for row in _rows(known).items() if row[0] != path]
        return {**dict(others[-REMEMBERED:]), path: [stamp.exact, found]}

    change_state(folder / FILE, with_this)

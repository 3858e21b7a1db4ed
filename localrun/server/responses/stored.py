"""Responses that clients may go back to by their id: in memory, and on disk with --store-disk.

There are at most 1,000, of at most 256 MB in all; the least recently used go first.
"""

import json
import os
import re
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.files import make_private, remove_unfinished, write_whole
from localrun.base.paths import writable_folder
from localrun.base.request import Json
from localrun.base.small_file import read_small
from localrun.server.refusal import Refusal

MAX_RESPONSES = 1_000
MAX_BYTES = 256 << 20
FOLDER = "responses"  # within the cache folder
_ID = re.compile(r"resp_[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """`response` as the client got it; `items`: its own input, without that of earlier responses."""

    response: Json
    items: list[Json]

    @property
    def previous(self) -> str:
        return self.response.get("previous_response_id") or ""


class MemoryShelf:
    """Bounded store of texts by id, in memory. Thread-safe."""

    def __init__(self) -> None:
        self._data: OrderedDict[str, bytes] = OrderedDict()
        self._n_bytes = 0
        self._lock = threading.Lock()

    def put(self, id: str, data: bytes) -> None:
        with self._lock:
            self._n_bytes += len(data) - len(self._data.pop(id, b""))
            self._data[id] = data
            while len(self._data) > MAX_RESPONSES or self._n_bytes > MAX_BYTES:
                self._n_bytes -= len(self._data.popitem(last=False)[1])

    def get(self, id: str) -> bytes | None:
        """The response of an id; marks it as used."""
        with self._lock:
            if id in self._data:
                self._data.move_to_end(id)
            return self._data.get(id)

    def remove(self, id: str) -> None:
        with self._lock:
            self._n_bytes -= len(self._data.pop(id, b""))


@dataclass(frozen=True, slots=True)
class ShelfFigures:
    """Number of responses, their bytes, and the time of the latest use in seconds since 1970."""

    n_responses: int
    nbytes: int
    last_used: float


class DiskShelf:
    """A file for each, which only this user can read. Several servers may share a folder. `put` raises OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, id: str, data: bytes) -> None:
        self._folder.mkdir(exist_ok=True, mode=0o700)
        make_private(self._folder)
        remove_unfinished(self._folder)
        write_whole(self._path(id), data)
        self._trim()

    def get(self, id: str) -> bytes | None:
        with suppress(OSError):
            data = read_small(self._path(id), MAX_BYTES, follow_links=False)
            os.utime(self._path(id))
            return data
        return None

    def remove(self, id: str) -> None:
        with suppress(OSError):
            self._path(id).unlink()

    def _path(self, id: str) -> Path:
        return self._folder / f"{id}.json"

    def figures(self) -> ShelfFigures:
        """Summary of the folder; empty where there is none."""
        stats = [stat for stat, _ in self._files()]
        last_used = max((stat.st_mtime for stat in stats), default=0.0)
        return ShelfFigures(len(stats), sum(stat.st_size for stat in stats), last_used)

    def clear(self) -> int:
        """Remove all; gives the bytes freed. Raises OSError."""
        freed = 0
        for stat, path in self._files():
            os.unlink(path)
            freed += stat.st_size
        return freed

    def _files(self) -> list[tuple[os.stat_result, str]]:
        """Files, the most recently used first."""
        try:
            with os.scandir(self._folder) as entries:
                found = [(one.stat(follow_symlinks=False), one.path) for one in entries if _ID.match(one.name)]
        except FileNotFoundError:
            return []
        return sorted(found, key=lambda one: -one[0].st_mtime_ns)

    def _trim(self) -> None:
        n_bytes = 0
        for number, (stat, path) in enumerate(self._files()):
            n_bytes += stat.st_size
            if number >= MAX_RESPONSES or n_bytes > MAX_BYTES:
                with suppress(OSError):
                    os.unlink(path)


class StoredResponses:
    """Responses by id. One that cannot be written to the disk stays in memory."""

    def __init__(self, on_disk: bool) -> None:
        folder = writable_folder("cache") if on_disk else None
        self._memory = MemoryShelf()
        self._disk = None if folder is None else DiskShelf(folder / FOLDER)

    def keep(self, stored: StoredResponse) -> str:
        """Keep a response; gives a note for the client where it is not on disk as it should be, else nothing."""
        id, data, note = stored.response["id"], json.dumps(asdict(stored)).encode(), ""
        if self._disk is not None:
            try:
                self._disk.put(id, data)
                return ""
            except OSError as error:
                note = f"this response is kept in memory only: {error.strerror or type(error).__name__}"
        self._memory.put(id, data)
        return note

    def get(self, id: str) -> StoredResponse:
        """Raises Refusal."""
        data = self._memory.get(id)
        if data is None and self._disk is not None and _ID.fullmatch(id):
            data = self._disk.get(id)
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            values = json.loads(data or b"")
            return StoredResponse(dict(values["response"]), list(values["items"]))
        raise Refusal(404, f"there is no stored response {id[:80]}", "response_not_found", "response_id")

    def remove(self, id: str) -> None:
        """Raises Refusal."""
        self.get(id)
        self._memory.remove(id)
        if self._disk is not None:
            self._disk.remove(id)

    def chain(self, id: str) -> list[StoredResponse]:
        """A response and its chain of earlier ones, the oldest first. Raises Refusal where one of them is gone."""
        found: list[StoredResponse] = []
        while id:
            try:
                if len(found) == MAX_RESPONSES:  # files that lead in a circle
                    raise Refusal(400, "too many")
                found.append(self.get(id))
            except Refusal:
                what = f"response {id[:80]} is not stored, or not any more"
                raise Refusal(400, what, "previous_response_not_found", "previous_response_id") from None
            id = found[-1].previous
        return found[::-1]

"""Verification of arrived data: a checksum of every chunk for the journal, and the hash of the whole file."""

import zlib
from collections import deque

from localrun.base.small_file import open_regular
from localrun.hub.downloads.journal import CHUNK_BYTES, begin_hash
from localrun.hub.downloads.partial import Partial
from localrun.hub.remote.repo import RemoteFile


class Verifier:
    """Compute checksums as chunks arrive, in any order, and the hash in file order. A transfer fills `arrived`."""

    def __init__(self, file: RemoteFile, partial: Partial, arrived: deque[int]) -> None:
        self._hash = begin_hash(file.etag, file.size)
        self._partial = partial
        self._arrived = arrived
        self._part = open_regular(partial.path, follow_links=False)
        self._buffer = memoryview(bytearray(CHUNK_BYTES))
        self._next = 0  # for the hash

    @property
    def is_done(self) -> bool:
        return self._next == self._partial.n_chunks

    def advance(self) -> bool:
        """Process one chunk: a new one, else the next for the hash; False when there is none."""
        is_new = bool(self._arrived)
        chunk = self._arrived.popleft() if is_new else self._next
        if not is_new and chunk not in self._partial.chunks:
            return False
        data = self._read(chunk)
        if is_new:
            self._partial.record(chunk, zlib.crc32(data))
        if chunk == self._next:
            self._hash.update(data)
            self._next += 1
        return True

    def note_arrived(self) -> None:
        """Record all arrived chunks, so that a download that ends early keeps them."""
        while self._arrived:
            self.advance()

    def hexdigest(self) -> str:
        return str(self._hash.hexdigest())

    def close(self) -> None:
        self._part.close()

    def _read(self, chunk: int) -> memoryview:
        start, end = self._partial.bounds(chunk)
        self._part.seek(start)
        n_read = 0
        while start + n_read < end and (n_more := self._part.readinto(self._buffer[n_read : end - start])):
            n_read += n_more
        return self._buffer[:n_read]

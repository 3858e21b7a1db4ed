"""Restore of one prompt from disk: read on a thread of its own, put into the tree a few blocks per step."""

import queue
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from localrun.base.kept_threads import KeptThreads
from localrun.storage.block_files import FoundBlock
from localrun.storage.disk_cache import DiskCache

READ_AHEAD = 16  # blocks that have been read and not yet been put into the tree
PORTION = 4  # blocks that are put there between two looks at the clock
WAIT_SECONDS = 0.5  # for room among those, before looking whether anybody still wants them
THREADS = KeptThreads("localrun-restore")


class Restore:
    """One running restore.

    `advance` is called on the engine's thread; the reader calls `wake` when it has read more.
    """

    def __init__(self, disk: DiskCache, token_ids: Sequence[int], wake: Callable[[], None]) -> None:
        self.n_tokens = 0  # brought back so far
        self.is_over = False
        self.seconds = 0.0
        self._started = time.perf_counter()
        self._disk, self._ids, self._wake = disk, token_ids, wake
        self._found: queue.Queue[FoundBlock | None] = queue.Queue(READ_AHEAD)
        missing = disk.missing(token_ids)
        if missing is None:
            self.is_over = True
            return
        THREADS.run(partial(self._read, disk.find(missing)))

    @property
    def is_ready(self) -> bool:
        """Whether there are blocks to insert, or nothing more to wait for."""
        return self.is_over or not self._found.empty()

    def advance(self, seconds: float) -> None:
        """Put blocks that were read into the tree, for about `seconds`."""
        until = time.perf_counter() + seconds
        while not self.is_over and not self._found.empty() and time.perf_counter() < until:
            portion: list[FoundBlock] = []
            while len(portion) < PORTION and not self._found.empty() and not self.is_over:
                found = self._found.get_nowait()
                if found is None:
                    self.is_over = True
                else:
                    portion.append(found)
            n_tokens = self._disk.insert(self._ids, portion) if portion else 0
            self.n_tokens += n_tokens
            if not n_tokens:  # there is no more room, or what it follows is gone
                self.is_over = True
        self.seconds = time.perf_counter() - self._started

    def give_up(self) -> None:
        """Cancel the restore."""
        self.is_over = True

    def _read(self, found: Iterable[FoundBlock]) -> None:
        try:
            for one in found:
                if not self._put(one):
                    return
        except Exception:
            pass
        self._put(None)

    def _put(self, one: FoundBlock | None) -> bool:
        while not self.is_over:
            try:
                self._found.put(one, timeout=WAIT_SECONDS)
            except queue.Full:
                continue
            self._wake()
            return True
        return False

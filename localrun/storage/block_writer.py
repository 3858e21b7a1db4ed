"""The thread that writes blocks to disk beside the engine. Reading goes first, because a user waits for it."""

import errno
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from localrun.base.dataclass import dataclass
from localrun.base.files import disk_usage
from localrun.storage.block_file import BlockKey
from localrun.storage.block_files import BlockFiles
from localrun.storage.trim import known_total, note_total, trim

QUEUE_BYTES = 8 << 20  # of blocks on their way to the disk
FEWEST_QUEUED = 4  # blocks
QUIET_SECONDS = 0.005  # without a block read, before one is written
STALLED_SECONDS = 20.0  # for one block, after which the disk is not waited for any more


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A block on its way to disk; without parts it is there already and only belongs to one more chat.

    `files`: where it goes; None: where the blocks of the model go.
    """

    key: BlockKey
    ids: tuple[int, ...]
    parts: list[bytes]
    chats: tuple[str, ...]
    files: BlockFiles | None = None


class BlockWriter:
    """Write blocks, and keep everything on disk within `budget` bytes. Called on the engine's thread.

    `problem` is why nothing is written any more, in words for the user. After the disk fails, blocks are dropped
    without a wait.
    """

    def __init__(self, files: BlockFiles, budget: int, saved: set[bytes]) -> None:
        """Start empty. `saved`: hashes of blocks on disk or on their way; removed blocks leave the set."""
        self.files, self.budget, self.saved = files, budget, saved
        self.problem = ""
        self.nbytes = 0  # on disk, as far as is known
        self.n_given = self.n_written = 0  # blocks that it was given, and those that it is done with
        self.last_read = 0.0  # when somebody looked for a block, by time.monotonic
        self._given_up = False  # it is not waited for any more
        self._ending = threading.Event()  # nobody reads any more
        self._queue: queue.Queue[Unwritten | None] = queue.Queue(max(FEWEST_QUEUED, QUEUE_BYTES // sum(files.sizes)))
        self._claims: deque[tuple[BlockKey, str]] = deque()  # of blocks that are on disk
        self._thread = threading.Thread(target=self._write_all, name="localrun-disk-cache", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_full(self) -> bool:
        return self._queue.full()

    def give(self, block: Unwritten) -> None:
        """Queue a block to write; the queue must have room."""
        self.n_given += 1
        self._queue.put_nowait(block)

    def give_patiently(self, block: Unwritten) -> None:
        """Queue a block from any other thread than the engine's, and wait until there is room."""
        self.n_given += 1
        self._put(block)

    def claim(self, key: BlockKey, chat: str) -> None:
        """Note that a block on disk belongs to one more chat."""
        self._claims.append((key, chat))

    def close(self, last: Iterable[Unwritten]) -> None:
        """Write these blocks too, and wait for all of them as long as the disk makes progress."""
        self._ending.set()
        for block in last:
            self.n_given += 1
            if not self._put(block):
                break
        self._given_up = not self._put(None)
        while self.is_alive:
            before = self.n_written
            self._thread.join(STALLED_SECONDS)
            if self.n_written == before:
                self._given_up = True
                return

    def _put(self, block: Unwritten | None) -> bool:
        """Queue a block, however long that takes; False where nothing is written any more."""
        while self.is_alive and not (self.problem and block):
            before = self.n_written
            try:
                self._queue.put(block, timeout=STALLED_SECONDS)
                return True
            except queue.Full:
                if self.n_written == before:
                    return False
        return False

    def _write_all(self) -> None:
        """Run the thread."""
        self._try(self._begin)
        while (block := self._queue.get()) is not None:
            self._let_others_read()
            self._try(partial(self._write, block))
            self.n_written += 1
            if self._given_up:
                return
        self._try(self._finish)

    def _let_others_read(self) -> None:
        """Wait while blocks are read, as long as the queue has room."""
        while time.monotonic() - self.last_read < QUIET_SECONDS and not self._queue.full():
            if self._ending.wait(QUIET_SECONDS):
                return

    def _try(self, work: Callable[[], None]) -> None:
        try:
            if not self.problem:
                work()
        except OSError as error:
            self.problem = f"nothing more is kept on disk: {error.strerror or error}: {self.files.root}"
        except Exception as error:  # a bug of ours must not stop the engine
            self.problem = f"nothing more is kept on disk: {type(error).__name__}: {error}"

    def _begin(self) -> None:
        known = known_total(self.files.root)
        self.nbytes = known or 0
        if known is None or known > self.budget:
            self._trim()
        if disk_usage(self.files.root).free < sum(self.files.sizes):  # this may be the last answer, so say it now
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _write(self, block: Unwritten) -> None:
        self._write_claims()
        files = block.files or self.files
        self.nbytes += files.save(block.key, block.ids, block.parts, block.chats)
        if self.nbytes > self.budget:
            self._trim()

    def _finish(self) -> None:
        self._write_claims()
        if self.nbytes > self.budget:
            self._trim()
        elif self.n_written:
            note_total(self.files.root, self.nbytes)

    def _write_claims(self) -> None:
        claimed: dict[str, list[BlockKey]] = {}
        while self._claims:
            key, chat = self._claims.popleft()
            claimed.setdefault(chat, []).append(key)
        for chat, keys in claimed.items():
            self.files.claim(keys, [chat])

    def _trim(self) -> None:
        """Free more space than the next block needs, since looking through all files takes time."""
        room = self.budget - self.budget // 16 if self.nbytes > self.budget else self.budget
        self.nbytes, removed = trim(self.files.root, room, self.files.label)
        note_total(self.files.root, self.nbytes, looked=True)
        own = self.files.fingerprint.hex()
        self.saved.difference_update(bytes.fromhex(block.own) for block in removed if block.fingerprint == own)

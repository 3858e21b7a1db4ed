"""The prefix tree's blocks on disk: written while the engine is idle, brought back when a prompt begins like them."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakSet

from localrun.cache.blocks import NO_BLOCK, OutOfBlocks
from localrun.cache.disk import DiskTier, Key
from localrun.cache.groups import BLOCK_TOKENS
from localrun.cache.prefix import Node, common_prefix
from localrun.cache.store import CacheStore

Read = Callable[[int, int], bytes]  # (pool, block) -> the backend's private bytes
Write = Callable[[int, int, memoryview], None]
Held = tuple[Node, list[int]]
_QUEUED = 4  # blocks on their way to the disk
_BUSY_SECONDS = 0.1  # until a writer that has as many may take another


class DiskCache:
    """Moves blocks between a store and a DiskTier. All but `nbytes` is called on the engine's thread."""

    def __init__(self, store: CacheStore, disk: DiskTier, read: Read, write: Write, sizes: Sequence[int]) -> None:
        """`sizes`: bytes of a block of every pool."""
        self.store, self.disk, self.read, self.write, self.sizes = store, disk, read, write, tuple(sizes)
        self.saved: set[Key] = set()
        self.restored: WeakSet[Node] = WeakSet()  # what came from the disk
        self._unsaved: deque[tuple[Node, Key]] = deque()
        self.nbytes = 0  # on disk, as of the last look
        self._queue: queue.Queue[tuple[Key, tuple[int, ...], list[bytes]] | None] = queue.Queue(_QUEUED)
        self._writer = threading.Thread(target=self._write_all, name="localrun-disk-cache", daemon=True)
        self._writer.start()

    def restore(self, token_ids: Sequence[int]) -> int:
        """Bring back what is on disk of `token_ids` beyond what the tree knows. Gives the tokens brought back."""
        match = self.store.tree.match(token_ids)
        if match.n_tokens >= len(token_ids) - 1:
            return 0
        keys = self._keys(token_ids)
        path = list(match.path)
        held = [(node, self.store.hold(node)) for node in path]
        try:
            chain = self._bring_chain(token_ids, keys, path, held, n_known_tail=match.n_tail)
        except OutOfBlocks:
            chain = keys[: len(path)]  # as much as there is room for
        finally:
            for node, blocks in held:
                self.store.let_go(node, blocks)
        self.disk.touch(chain)
        return max(0, self.store.tree.match(token_ids).n_tokens - match.n_tokens)

    def _bring_chain(
        self, token_ids: Sequence[int], keys: list[Key], path: list[Node], held: list[Held], n_known_tail: int
    ) -> list[Key]:
        """Lengthen `path` by what is on disk: full blocks, then the one that shares most of what comes next."""

        def bring(key: Key, ids: tuple[int, ...]) -> bool:
            node = self._bring(key, ids, path)
            if node is not None:
                path.append(node)
                held.append((node, self.store.hold(node)))
            return node is not None

        n_in_memory = len(path)
        while len(path) < len(keys):
            start = len(path) * BLOCK_TOKENS
            if not bring(keys[len(path)], tuple(token_ids[start : start + BLOCK_TOKENS])):
                break
        chain = keys[: len(path)]
        wanted = token_ids[len(path) * BLOCK_TOKENS :]
        following = list(self.disk.following(chain[-1] if chain else None))
        n_best, (key, ids) = max(
            ((common_prefix(ids, wanted), (key, ids)) for key, ids in following),
            key=lambda pair: pair[0],
            default=(0, (None, ())),
        )
        shortest = n_known_tail if len(path) == n_in_memory else 0
        if key is not None and n_best > shortest and bring(key, ids):
            return [*chain, key]
        return chain

    def save_one(self) -> float | None:
        """Send one block that is not on disk yet to the writer. Gives the seconds until there may be more to do, None
        when all is saved: until something is computed again there is no need to look."""
        if self._queue.full():
            return _BUSY_SECONDS
        if not self._unsaved:
            self._unsaved.extend(self._find_unsaved())
        while self._unsaved:
            node, key = self._unsaved.popleft()
            if self.store.tree.holds(node):
                self._send(node, key)
                return 0.0
        return None

    def close(self) -> None:
        """Save all that is left, and wait for it."""
        for node, key in self._find_unsaved():
            self._send(node, key)
        self._queue.put(None)
        self._writer.join()

    def _send(self, node: Node, key: Key) -> None:
        self.saved.add(key)
        parts = [b"" if b == NO_BLOCK else self.read(pool, b) for pool, b in enumerate(node.blocks)]
        self._queue.put((key, node.ids, parts))

    def _find_unsaved(self) -> list[tuple[Node, Key]]:
        keys: dict[Node, Key] = {}
        for node in self.store.tree.nodes():  # parents first
            before = keys.get(node.parent) if node.parent is not None else None
            keys[node] = self.disk.key(before, node.ids)
        return [(node, key) for node, key in keys.items() if key not in self.saved]

    def _keys(self, token_ids: Sequence[int]) -> list[Key]:
        """The keys of all full blocks of a text."""
        keys: list[Key] = []
        for start in range(0, len(token_ids) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
            before = keys[-1] if keys else None
            keys.append(self.disk.key(before, token_ids[start : start + BLOCK_TOKENS]))
        return keys

    def _bring(self, key: Key, ids: tuple[int, ...], path: Sequence[Node]) -> Node | None:
        """One block from the disk into the tree; None where there is none. Raises OutOfBlocks."""
        parts = self.disk.load(key, ids, self.sizes)
        if parts is None:
            return None
        self.saved.add(key)
        fill = [partial(self._fill, pool, data) if data else None for pool, data in enumerate(parts)]
        node = self.store.plant(path[-1] if path else None, ids, fill)
        self.restored.add(node)
        return node

    def _fill(self, pool: int, data: memoryview, block: int) -> None:
        self.write(pool, block, data)

    def _write_all(self) -> None:
        self.disk.trim()
        self.nbytes = self.disk.nbytes()
        since_trim = 0
        while (item := self._queue.get()) is not None:
            key, ids, parts = item
            if not self.disk.has(key):
                self.disk.save(key, ids, parts)
            since_trim += sum(map(len, parts))
            if since_trim > self.disk.budget // 16:
                self.disk.trim()
                since_trim = 0
                self.nbytes = self.disk.nbytes()
        self.disk.trim()

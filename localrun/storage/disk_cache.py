"""The prefix tree's blocks on disk: written beside the engine, restored when a prompt begins like them.

Only blocks of stored chats are written: while the engine is idle, when they would be evicted, and at the end. Reading
goes before writing, because a user waits for it.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from weakref import WeakKeyDictionary, WeakSet

from localrun.base.dataclass import dataclass
from localrun.cache.blocks import NO_BLOCK, OutOfBlocks
from localrun.cache.node import Node
from localrun.cache.store import CacheStore
from localrun.storage.block_file import BlockKey
from localrun.storage.block_files import BlockFiles, FoundBlock
from localrun.storage.block_writer import BlockWriter, Unwritten
from localrun.storage.erase import erase_fingerprints
from localrun.storage.inventory import fingerprints
from localrun.storage.label import read_label

Read = Callable[[int, int], bytes]  # (pool, block) -> the backend's private bytes
Write = Callable[[int, int, memoryview], None]
BUSY_SECONDS = 0.1  # until a writer that has as many may take another


@dataclass(frozen=True, slots=True)
class Missing:
    """The part of a prompt that is not in memory:

    `token_ids` after the block `before`, of which `n_known` are known.
    """

    before: BlockKey | None
    token_ids: Sequence[int]
    n_known: int


class DiskCache:
    """Move blocks between a store and a BlockFiles, on the engine's thread unless stated otherwise.

    `n_dropped` counts blocks that were lost because the disk was slower than the engine.
    """

    def __init__(self, store: CacheStore, files: BlockFiles, read: Read, write: Write, budget: int) -> None:
        """Start with an empty queue. `budget`: bytes on disk, of all models together."""
        self.store, self.files, self.read, self.write = store, files, read, write
        self.saved: set[bytes] = set()  # hashes of blocks that are on disk, or on their way
        self.restored: WeakSet[Node] = WeakSet()  # what came from the disk
        self.n_dropped = 0
        self._keys: WeakKeyDictionary[Node, BlockKey] = (
            WeakKeyDictionary()
        )  # names on disk, once somebody asked for them
        self.writer = BlockWriter(files, budget, self.saved)
        self._unsaved: deque[Node] = deque()
        store.on_claim, store.tree.on_evict = self._note_claim, self._spill

    def restore(self, token_ids: Sequence[int]) -> int:
        """Restore blocks of `token_ids` from disk that the tree does not have. Returns the number of tokens."""
        missing = self.missing(token_ids)
        return 0 if missing is None else self.insert(token_ids, self.find(missing))

    def missing(self, token_ids: Sequence[int]) -> Missing | None:
        """The part of a prompt to look for on disk; None where memory has all of it."""
        match = self.store.tree.match(token_ids)
        if match.n_tokens >= len(token_ids) - 1:
            return None
        n = len(match.path) * self.store.block_tokens
        return Missing(self._key(match.path[-1]) if match.path else None, token_ids[n:], match.n_tail)

    def find(self, missing: Missing) -> Iterator[FoundBlock]:
        """Read the blocks that are on disk, one by one. Callable from any thread."""
        self.writer.last_read = time.monotonic()
        for found in self.files.read_on(missing.before, missing.token_ids, missing.n_known):
            self.writer.last_read = time.monotonic()
            yield found

    def insert(self, token_ids: Sequence[int], found: Iterable[FoundBlock]) -> int:
        """Put found blocks into the tree, as many as fit. Returns the number of new tokens."""
        found = iter(found)
        first = next(found, None)
        if first is None:
            return 0
        match = self.store.tree.match(token_ids)
        path = list(match.path)
        held = [(node, self.store.tree.hold(node)) for node in path]
        last: FoundBlock | None = None
        try:
            for one in chain([first], found):
                n_before = (one.key.n_tokens - len(one.ids)) // self.store.block_tokens
                if n_before > len(path):
                    break  # what it follows was evicted meanwhile
                node = self._insert(one, path[n_before - 1] if n_before else None)
                held.append((node, self.store.tree.hold(node)))
                path[n_before:] = [node]
                last = one
        except OutOfBlocks:
            pass
        finally:
            for node, blocks in held:
                self.store.tree.let_go(node, blocks)
        if last is None:
            return 0
        self.files.touch(last.key)
        return max(0, last.n_shared(token_ids) - match.n_tokens)

    def save_one(self) -> float | None:
        """Send one unsaved block to the writer. Returns the seconds until there may be more to save.

        None when all is saved: nothing changes until something is computed again.
        """
        if self.writer.problem:
            self._unsaved.clear()
        if self._unsaved and self.writer.is_full:
            return BUSY_SECONDS
        for block in self._left():
            self.writer.give(block)
            return 0.0
        return None

    def close(self) -> None:
        """Save the remaining blocks, and wait as long as the disk makes progress."""
        self.writer.close(self._left())

    def discard(self) -> None:
        """Save nothing more, and remove everything computed with these weights, which may be wrong."""
        self._unsaved.clear()
        self.writer.problem = "blocks computed with damaged weights are not stored"
        self.writer.close(())
        root, weights = self.files.root, self.files.label.weights
        with suppress(OSError):
            erase_fingerprints(root, [one.name for one in fingerprints(root) if read_label(one).weights == weights])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user about the disk cache."""
        lost = f"{self.n_dropped:,} blocks were not stored: the disk is slower than the engine"
        return (*([self.writer.problem] if self.writer.problem else ()), *([lost] if self.n_dropped else ()))

    def _insert(self, one: FoundBlock, parent: Node | None) -> Node:
        """Put one block from disk into the tree. Raises OutOfBlocks."""
        fill = [partial(self._fill, pool, data) if data else None for pool, data in enumerate(one.parts)]
        node = self.store.insert(parent, one.ids, fill)
        self._keys[node] = one.key
        self.saved.add(one.key.own)
        self.restored.add(node)
        return node

    def _fill(self, pool: int, data: memoryview, block: int) -> None:
        self.write(pool, block, data)

    def _key(self, node: Node) -> BlockKey:
        way: list[Node] = []
        key: BlockKey | None = None
        above: Node | None = node
        while above is not None and above.parent is not None and (key := self._keys.get(above)) is None:
            way.append(above)
            above = above.parent
        for one in reversed(way):
            key = self._keys[one] = self.files.key(key, one.ids)
        assert key is not None
        return key

    def _note_claim(self, node: Node, chat: str) -> None:
        """Note that a node belongs to a stored chat from now on."""
        key = self._key(node)
        if key.own in self.saved:
            self.writer.claim(key, chat)
        else:
            self._unsaved.append(node)

    def _left(self) -> Iterator[Unwritten]:
        """Blocks that are not on disk yet, read one by one."""
        while self._unsaved:
            if (block := self._unwritten(self._unsaved.popleft())) is not None:
                yield block

    def _unwritten(self, node: Node) -> Unwritten | None:
        """A node in the form to be written; None where it is saved already or would be useless on disk."""
        key = self._key(node)
        begins = key.before == self.files.fingerprint
        if not self.store.tree.holds(node) or key.own in self.saved or not (begins or key.before in self.saved):
            return None
        return self._read(node, key)

    def _spill(self, node: Node) -> None:
        """Write a node that is about to lose a block, unless the disk is behind."""
        if not node.chats or self.writer.problem:
            return
        key = self._key(node)
        if key.own in self.saved:
            return
        if self.writer.is_full:
            self.n_dropped += 1
        else:
            self.writer.give(self._read(node, key))

    def _read(self, node: Node, key: BlockKey) -> Unwritten:
        self.saved.add(key.own)
        parts = [b"" if b == NO_BLOCK else self.read(pool, b) for pool, b in enumerate(node.blocks)]
        return Unwritten(key, node.ids, parts, tuple(node.chats))

"""Run texts for measurements: nothing of them stays in the cache."""

from collections.abc import Sequence
from types import TracebackType

from localrun.cache.store import CacheStore
from localrun.engine.runner import Runner, cache_input
from localrun.ops.interface import Logits


class ScratchRuns:
    """`count` texts with equal ids side by side. A context manager; use it while the engine is idle."""

    def __init__(self, runner: Runner, store: CacheStore, count: int = 1, depth: int = 0) -> None:
        """Open the texts.

        With `depth` that many tokens count as computed, whatever the blocks hold. Raises OutOfBlocks.
        """
        self.runner, self.store = runner, store
        self.caches = [store.open_private() for _ in range(count)]
        try:
            for cache in self.caches:
                store.skip(cache, depth)
        except BaseException:
            self.close()
            raise

    def feed(self, ids: Sequence[int], start: int, logits_rows: Sequence[int], n_bulk: int = 0) -> Logits:
        """One step over `ids` at positions start … ; `logits_rows` count rows of all texts, one after another.

        Tokens at positions below `n_bulk` are read in bulk.
        """
        stop = start + len(ids)
        for cache in self.caches:
            self.store.extend(cache, start, stop)
        views = [cache_input(self.runner.groups, cache, start, len(ids), n_bulk) for cache in self.caches]
        logits = self.runner.compute([(ids, start)] * len(self.caches), views, logits_rows)
        for cache in self.caches:
            self.store.commit(cache, (), stop)
        return logits

    def close(self) -> None:
        for cache in self.caches:
            self.store.close(cache, ())
        self.caches = []

    def __enter__(self) -> "ScratchRuns":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""Readiness of a waiting sequence: its blocks are back from the disk, and its images are encoded. No tensors."""

from collections.abc import Callable

from localrun.cache.store import CacheStore
from localrun.engine.encoding import Encoding
from localrun.engine.generation import GenerationState
from localrun.storage.disk_cache import DiskCache
from localrun.storage.restore import Restore


class Readiness:
    """Restores and encodes beside the engine's thread; `wake` is called from others when there is more to do."""

    def __init__(self, store: CacheStore, disk: DiskCache | None, wake: Callable[[], None]) -> None:
        self.store, self.disk, self.wake = store, disk, wake

    def is_ready(self, sequence: GenerationState, seconds: float) -> bool:
        """Whether it can run; else go on with what is missing, for about `seconds`."""
        return self._is_restored(sequence, seconds) and self._is_encoded(sequence)

    def can_go_on(self, sequence: GenerationState) -> bool:
        """Whether there is something to do for it now."""
        if sequence.restore is not None and not sequence.restore.is_ready:
            return False
        return sequence.encoding is None or sequence.encoding.is_over

    def give_up(self, sequence: GenerationState) -> None:
        """Cancel all that goes on for a sequence."""
        for task in (sequence.restore, sequence.encoding):
            if task is not None:
                task.give_up()

    def _is_restored(self, sequence: GenerationState, seconds: float) -> bool:
        """Whether its blocks on disk are in memory by now; else read some more."""
        if self.disk is None or sequence.admitted:
            return True
        if sequence.restore is None:
            sequence.restore = Restore(self.disk, sequence.reusable, self.wake)
        sequence.restore.advance(seconds)
        return sequence.restore.is_over

    def _is_encoded(self, sequence: GenerationState) -> bool:
        """Whether the images are encoded whose rows it has to compute; else begin with those that are not."""
        task = sequence.encoding
        if sequence.images is None or (task is not None and not task.is_over):
            return sequence.images is None
        missing = sequence.images.missing(self.store.known(sequence.reusable).start)
        if missing and (task is None or task.error is None):  # an error ends the sequence
            sequence.encoding = Encoding(missing, sequence.tell, self.wake)
        return not missing

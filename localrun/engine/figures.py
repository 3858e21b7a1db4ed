"""Figures of one generation. No tensors."""

import time
from dataclasses import field

from localrun.base.dataclass import dataclass
from localrun.base.device_figures import DeviceFigures
from localrun.cache.sequence_cache import SequenceCache
from localrun.storage.restore import Restore


@dataclass(eq=False, slots=True)
class GenerationFigures:
    """Where the tokens of a prompt came from, how long the work took in seconds, and the bytes it holds."""

    n_cached: int = 0  # tokens of the prompt, not computed again
    n_replayed: int = 0  # of the prompt, computed again only for layers whose window had moved on
    n_restored: int = 0  # of the cached ones, brought back from disk
    note: str = ""  # reason that no more of it was cached
    evicted: bool = False  # more of it was cached once
    n_ahead: int = 0  # other generations under way at its start
    n_beside: int = 0  # tokens of others in the steps that computed its own
    started: float = field(default_factory=time.perf_counter)  # seconds
    queue_seconds: float | None = None  # until it was first let run, less what disk and images took; None: not yet
    restore_seconds: float = 0.0
    encode_seconds: float = 0.0  # of images
    prefill_seconds: float = 0.0
    prefill_rows: int = 0  # computed in that time, replayed ones included
    n_drafted: int = 0  # tokens of drafts that were verified
    n_accepted: int = 0  # of these, part of the answer
    n_searched: int = 0  # times that drafts were looked for
    right_drafts: list[tuple[int, int]] = field(default_factory=list)  # tokens before a step, and how many were right
    saved_seconds: float = 0.0  # by drafts, by the measured cost of steps without them, less what drafting took
    device: DeviceFigures = field(default_factory=DeviceFigures)
    token_times: list[float] = field(default_factory=list)  # seconds, when each token was known
    kv_bytes: int = 0  # of its blocks, once it has ended
    kept_kv_bytes: int = 0  # of the blocks of others, then

    @property
    def draft_gain(self) -> float | None:
        """Times as fast as it would have been written without drafts, an estimate; None where nothing was drafted."""
        if not self.n_drafted or len(self.token_times) < 2:
            return None
        decoding = self.token_times[-1] - self.token_times[0]
        return max(0.0, decoding + self.saved_seconds) / decoding if decoding else None

    def accepted_in(self, n: int) -> int:
        """Right drafts among the first n tokens of the answer, whose last one is the one that its step had in any
        case."""
        return sum(min(right, max(0, n - 1 - before)) for before, right in self.right_drafts)

    def count_reuse(self, cache: SequenceCache, restore: Restore | None, why: str) -> None:
        """Note the cached part of the prompt; `why`: the reason within the request that it is no more, which knows
        better where it differs."""
        self.n_cached, self.n_replayed = cache.n_cached, cache.n_replayed
        if restore is not None:
            self.n_restored = min(restore.n_tokens, self.n_cached)
            self.restore_seconds = restore.seconds
        if self.queue_seconds is None:
            elsewhere = self.restore_seconds + self.encode_seconds
            self.queue_seconds = max(0.0, time.perf_counter() - self.started - elsewhere)
        self.evicted = cache.reuse.evicted
        self.note = "; ".join(note for note in (why or cache.reuse.difference, cache.reuse.note) if note)

    def count_steps(self, begun: DeviceFigures) -> None:
        """Note what a device began in a step of it."""
        self.device = self.device.plus(begun)

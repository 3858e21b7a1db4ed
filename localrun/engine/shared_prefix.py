"""Prompts with a common prefix: one sequence computes it, the others wait. No tensors."""

from collections.abc import Sequence

from localrun.cache.node import common_prefix
from localrun.cache.store import CacheStore
from localrun.engine.generation import GenerationState


class SharedPrefixes:
    """Pairs of sequences: one waits, its leader computes. Where a leader ends, fails or loses its blocks, the next one
    computes."""

    def __init__(self, store: CacheStore) -> None:
        self._store = store
        self._leaders: dict[int, tuple[GenerationState, int]] = {}  # by waiting sequence: leader, and last token
        self._shared: dict[tuple[int, int], int] = {}  # whole blocks, in tokens, of two prompts

    def leader(self, sequence: GenerationState, reading: Sequence[GenerationState]) -> GenerationState | None:
        """The running sequence to wait for; None where waiting would not help."""
        if not self._store.keep_prefixes:
            return None
        leader, fork = self._leaders.pop(sequence.number, (None, 0))
        if leader is None or leader not in reading or leader.n_computed >= fork:
            leader, fork = self._find(sequence, reading)
        if leader is None or leader.cache is None:
            return None
        self._leaders[sequence.number] = leader, fork
        self._store.expect_fork(leader.cache, fork)
        return leader

    def forget(self, sequence: GenerationState) -> None:
        """Forget a sequence that has ended."""
        self._leaders.pop(sequence.number, None)
        for pair in [pair for pair in self._shared if sequence.number in pair]:
            del self._shared[pair]

    def _find(
        self, sequence: GenerationState, reading: Sequence[GenerationState]
    ) -> tuple[GenerationState | None, int]:
        """The running sequence that shares the longest prefix still to be computed, and the length of that."""
        fork = 0
        leader: GenerationState | None = None
        for one in reading:
            alike = 0 if one.is_warm_up else self._alike(sequence, one)
            if alike > max(fork, one.n_computed):
                fork, leader = alike, one
        if leader is None or self._store.n_known(sequence.keys) >= fork:
            return None, 0
        return leader, fork

    def _alike(self, sequence: GenerationState, other: GenerationState) -> int:
        """Tokens of the whole blocks that both prompts begin with, all but the last token of the one that waits."""
        pair = sequence.number, other.number
        if pair not in self._shared:
            n = common_prefix(sequence.reusable[: sequence.n_prompt - 1], other.keys[: other.n_prompt])
            self._shared[pair] = n // self._store.block_tokens * self._store.block_tokens
        return self._shared[pair]

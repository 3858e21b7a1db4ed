"""Sequences and the prefix tree under random use, against a dense model: a state machine for hypothesis."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from localrun.cache.blocks import OutOfBlocks
from localrun.cache.kinds.interface import CacheKind
from localrun.cache.sequence_cache import SequenceCache
from localrun_testing.integer_model import CSA, FULL, HCA, LATENT, RECURRENT, IntegerModel, sinking, windowed

MODELS: dict[str, tuple[list[CacheKind], str]] = {
    "full": ([FULL, FULL], "f16"),
    "full q8": ([FULL, FULL], "q8"),
    "one window": ([windowed(70), windowed(70)], "f16"),
    "alternating": ([windowed(20), FULL, windowed(20), FULL], "f16"),
    "alternating q8": ([windowed(20), FULL, windowed(20), FULL], "q8"),
    "ends in windows": ([FULL, windowed(66), windowed(66)], "q8"),
    "two windows": ([windowed(20), FULL, windowed(90)], "f16"),
    "latent": ([LATENT, LATENT], "f16"),
    "recurrent": ([RECURRENT, FULL, RECURRENT], "f16"),
    "recurrent q8": ([RECURRENT, RECURRENT, FULL], "q8"),
    "recurrent and windows": ([windowed(70), RECURRENT, FULL], "f16"),
    "compressed": ([windowed(90), CSA, windowed(90)], "f16"),
    "compressed much": ([windowed(70), HCA, CSA], "f16"),
    "user's window": ([sinking(80), sinking(80)], "f16"),
    "user's window q8": ([sinking(80), windowed(20), sinking(80)], "q8"),
}
RUNS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 90)), min_size=1, max_size=3)
SHARES = st.sampled_from([0.3, 0.8, 0.9, 1.0, 1.0])  # of an old text that a new one begins with
MAX_TOKENS = 400


class Running:
    """One sequence: its text, and how much of it is computed."""

    def __init__(self, cache: SequenceCache, ids: list[int]) -> None:
        self.cache, self.ids, self.n_computed = cache, ids, cache.reuse.start


class Caches(RuleBasedStateMachine):
    """Random sequences side by side on a pool that is too small for all of them."""

    names = tuple(sorted(MODELS))

    @initialize(
        which=st.integers(0, len(MODELS) - 1),
        n_blocks=st.integers(7, 30),
        window_blocks=st.integers(5, 9),
        ring_blocks=st.integers(5, 12),
    )
    def start(self, which: int, n_blocks: int, window_blocks: int, ring_blocks: int) -> None:
        name = self.names[which % len(self.names)]
        layers, codec = MODELS[name]
        codecs = [codec if kind.window is None or kind.sink or "ends" in name else "f16" for kind in layers]
        self.model = IntegerModel(layers, codecs, n_blocks, window_blocks, ring_blocks)
        self.running: list[Running] = []
        self.texts: list[list[int]] = [[0] * 150]

    @rule(of=st.integers(0, 99), share=SHARES, runs=RUNS)
    def begin(self, of: int, share: float, runs: list[tuple[int, int]]) -> None:
        """An old text up to somewhere, then another way."""
        old = self.texts[-1 - of % len(self.texts)]
        ids = old[: round(share * len(old))] + [token for token, n in runs for _ in range(n)]
        ids = ids[:MAX_TOKENS]
        try:
            cache = self.model.store.open(ids)
        except OutOfBlocks:
            return
        assert cache.reuse.start <= cache.reuse.n_tokens < len(ids)
        self.running.append(Running(cache, ids))

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 9), n=st.integers(1, 200), keep=st.floats(0, 1))
    def compute(self, which: int, n: int, keep: float) -> None:
        """A step, of which maybe only a part is accepted: the tokens after that were others than those that come."""
        sequence = self.running[which % len(self.running)]
        start, n = sequence.n_computed, min(n, len(sequence.ids) - sequence.n_computed)
        if n == 0:
            return
        try:
            self.model.store.extend(sequence.cache, start, start + n)
        except OutOfBlocks:
            self.end(which)
            return
        exact = max(0, sequence.cache.reuse.n_tokens - start)
        accepted, drafted = max(1, round(keep * n)), list(sequence.ids)
        if not exact:
            drafted[start + accepted : start + n] = [token + 1 for token in drafted[start + accepted : start + n]]
        found = self.model.step(sequence.cache, drafted, start, n)
        assert found[exact:] == self.model.truth(drafted)[start : start + n][exact:]
        sequence.n_computed += accepted
        go_on = self.model.store.commit(sequence.cache, sequence.ids, sequence.n_computed)
        assert go_on <= sequence.n_computed
        sequence.n_computed = go_on

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 9), n_back=st.integers(0, 200), runs=RUNS)
    def truncate(self, which: int, n_back: int, runs: list[tuple[int, int]]) -> None:
        """Some tokens are taken back, and the text goes another way."""
        sequence = self.running[which % len(self.running)]
        n_left = max(0, max(sequence.n_computed, sequence.cache.reuse.n_tokens) - n_back)
        start = self.model.store.truncate(sequence.cache, n_left)
        assert start <= sequence.cache.reuse.n_tokens <= n_left
        sequence.n_computed = start
        sequence.ids = (sequence.ids[:n_left] + [token for token, n in runs for _ in range(n)])[:MAX_TOKENS]
        if len(sequence.ids) == n_left:
            sequence.ids = [*sequence.ids, 1]

    @rule(of=st.integers(0, 99), share=SHARES, runs=RUNS)
    def serve(self, of: int, share: float, runs: list[tuple[int, int]]) -> None:
        """A sequence from beginning to end."""
        before = len(self.running)
        self.begin(of, share, runs)
        if len(self.running) > before:
            self.finish(before)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 9))
    def finish(self, which: int) -> None:
        """Compute the rest and end."""
        sequence = self.running[which % len(self.running)]
        while sequence in self.running and sequence.n_computed < len(sequence.ids):
            self.compute(which, 128, 1.0)
        if sequence in self.running:
            self.end(which)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 9))
    def end(self, which: int) -> None:
        """Finished or cancelled: what is computed stays."""
        sequence = self.running.pop(which % len(self.running))
        self.texts.append(sequence.ids)
        self.model.store.close(sequence.cache, sequence.ids[: sequence.n_computed])

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 9))
    def fail(self, which: int) -> None:
        sequence = self.running.pop(which % len(self.running))
        self.model.store.abandon(sequence.cache)

    @invariant()
    def books_balance(self) -> None:
        if hasattr(self, "model"):
            self.model.check_books([sequence.cache for sequence in self.running])
            self.model.poison()

    def teardown(self) -> None:
        if hasattr(self, "model"):
            while self.running:
                self.end(0)
            self.model.store.tree.clear()
            assert all(pool.n_free == pool.n_blocks for pool in self.model.store.pools)

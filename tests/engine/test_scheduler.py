"""Which rows a step computes: nothing much twice, nobody left waiting, short prompts not behind long ones."""

import random
from collections import Counter
from collections.abc import Sequence as SequenceOf

import pytest
from localrun_testing.small_model import FULL, WINDOWED, greedy

from localrun.cache.groups import BLOCK_TOKENS
from localrun.cache.store import CacheStore
from localrun.engine.room import has_room
from localrun.engine.scheduler import Scheduler
from localrun.engine.sequence import Sequence
from localrun.fit.groups import group_layers
from localrun.model.config import LayerSpec
from localrun.ops.largest_step import MAX_CHUNK, MAX_RUNNING


class Paper:
    """A scheduler that runs without a model: every step is taken, and what is chosen is any token."""

    def __init__(self, n_blocks: int, layers: tuple[LayerSpec, ...] = (FULL,), seed: int = 0) -> None:
        groups = group_layers(layers)
        self.store = CacheStore(groups, [n_blocks] * len(groups))
        self.scheduler = Scheduler(self.store)
        self.rng = random.Random(seed)
        self.n_rows = self.n_steps = 0
        self.preempted: Counter[int] = Counter()
        preempt = self.scheduler._preempt

        def counted(sequence: Sequence) -> None:
            self.preempted[sequence.number] += 1
            preempt(sequence)

        self.scheduler._preempt = counted  # type: ignore[method-assign]

    def add(self, n_prompt: int, n_answer: int, start: SequenceOf[int] = ()) -> Sequence:
        prompt = [*start, *self.rng.choices(range(97), k=n_prompt - len(start))]
        sequence = Sequence(greedy(prompt, n_answer))
        self.scheduler.add(sequence)
        return sequence

    def step(self) -> list[tuple[Sequence, int]]:
        plan = self.scheduler.schedule()
        self.n_steps += 1
        self.n_rows += plan.n_rows
        assert plan.n_rows <= MAX_CHUNK + MAX_RUNNING
        assert len({s.number for s, _ in plan.work}) == len(plan.work)
        for sequence, n in plan.work:
            sequence.n_computed += n
            assert sequence.cache is not None
            self.store.commit(sequence.cache, sequence.token_ids, sequence.n_computed)
            if sequence.n_computed == sequence.n_tokens:
                sequence.append(self.rng.randrange(97), 0.0)
            if sequence.stop_reason is not None:
                self.scheduler.finish(sequence)
        return list(plan.work)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("layers", [(FULL,), (FULL, WINDOWED)], ids=["full", "windowed"])
def test_a_full_pool_computes_little_twice_and_everybody_ends(seed: int, layers: tuple[LayerSpec, ...]) -> None:
    rng = random.Random(seed)
    paper = Paper(rng.randrange(12, 40), layers, seed)
    room = paper.store.pools[0].n_blocks * BLOCK_TOKENS
    coming = [(rng.randrange(1, room // 3), rng.randrange(1, room // 4)) for _ in range(40)]
    shared = rng.choices(range(97), k=rng.choice([0, 100]))
    all_of_them: list[Sequence] = []
    limit = 100 + sum(n_prompt + n_answer for n_prompt, n_answer in coming)
    while len(all_of_them) < len(coming) or paper.scheduler.busy:
        if len(all_of_them) < len(coming) and rng.random() < 0.3:
            n_prompt, n_answer = coming[len(all_of_them)]
            all_of_them.append(paper.add(max(n_prompt, len(shared) + 1), n_answer, shared))
        paper.step()
        assert paper.n_steps < limit, "somebody waits for ever"
    assert all(s.stop_reason == "length" and s.n_generated == s.request.max_tokens for s in all_of_them)
    needed = sum(s.n_prompt + s.n_generated - 1 for s in all_of_them)
    assert paper.n_rows <= 1.5 * needed
    assert max(paper.preempted.values(), default=0) <= 2, "whoever was pushed out comes back to stay"
    paper.store.tree.clear()
    assert all(pool.n_free == pool.n_blocks for pool in paper.store.pools)


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    for rows_per_second in (30.0, 256.0, 10_000.0):
        paper = Paper(400)
        paper.scheduler.rows_per_second = rows_per_second
        long = paper.add(20_000, 5)
        paper.step()
        short = paper.add(100, 5)
        for _ in range(8):
            paper.step()
        assert short.n_generated > 0
        assert long.prefilling


def test_a_long_prompt_gets_on_while_short_ones_come() -> None:
    paper = Paper(400)
    paper.scheduler.rows_per_second = 100.0  # a block a step
    long = paper.add(3000, 2)
    n_steps = 0
    while long.prefilling:
        paper.add(70, 1)
        paper.step()
        n_steps += 1
        assert n_steps < 1000
    assert n_steps > 3000 / BLOCK_TOKENS


def test_the_first_chunk_is_a_block_and_those_after_it_are_what_a_second_holds() -> None:
    paper = Paper(400)
    long = paper.add(5000, 1)
    assert dict(paper.step()) == {long: BLOCK_TOKENS}
    for _ in range(4):
        paper.scheduler.observe(BLOCK_TOKENS, BLOCK_TOKENS / 400)
    assert 300 <= dict(paper.step())[long] <= 400


def test_the_rows_of_a_step_are_shared() -> None:
    paper = Paper(400)
    paper.scheduler.rows_per_second = 1e6
    sequences = [paper.add(n, 1) for n in (1000, 2000, 40, 3000)]
    work = dict(paper.step())
    assert work[sequences[2]] == 40
    assert sum(work.values()) > MAX_CHUNK - 2 * BLOCK_TOKENS
    assert set(work) == set(sequences)


@pytest.mark.parametrize("seed", range(20))
def test_what_has_room_is_not_pushed_out(seed: int) -> None:
    """Whoever is let in can be computed to the end of its prompt without anybody losing a block."""
    rng = random.Random(seed)
    layers = rng.choice([(FULL,), (FULL, WINDOWED), (WINDOWED,)])
    paper = Paper(rng.randrange(14, 60), layers, seed)
    for _ in range(6):
        paper.add(rng.randrange(1, 900), 10_000)
    for _ in range(4):
        paper.step()
    late = paper.add(rng.randrange(1, 900), 1)
    caches = [s.cache for s in paper.scheduler.running if s.cache is not None]
    if any(s.prefilling for s in paper.scheduler.running) or paper.scheduler.waiting[0] is not late:
        return
    if has_room(paper.store, caches, late.token_ids, MAX_CHUNK, 0):
        before = paper.preempted.total()
        while late.stop_reason is None:
            paper.step()
        assert paper.preempted.total() == before

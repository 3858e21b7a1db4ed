"""Which rows a step computes: nothing much twice, nobody left waiting, short prompts not behind long ones."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.pretend_engine import PretendEngine
from localrun_testing.small_model import FULL, WINDOWED, greedy

from localrun.base.image_ids import image_ids
from localrun.engine.admission import has_room
from localrun.engine.generation import GenerationState
from localrun.engine.images import ImageSource, RequestImages
from localrun.engine.step_cost import LEAST_ROWS
from localrun.model.config import LayerSpec
from localrun.ops.image_rows import ImageRows, ImageSpan
from localrun.ops.interface import CancelFlag
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.largest_step import BESIDE_SPANS, LEAST_CHUNK, MAX_ROWS, max_sequences


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("layers", [(FULL,), (FULL, WINDOWED)], ids=["full", "windowed"])
def test_a_full_pool_computes_little_twice_and_everybody_ends(seed: int, layers: tuple[LayerSpec, ...]) -> None:
    rng = random.Random(seed)
    engine = PretendEngine(rng.randrange(12, 40), layers, seed)
    room = engine.store.pools[0].n_blocks * BLOCK_TOKENS
    coming = [(rng.randrange(1, room // 3), rng.randrange(1, room // 4)) for _ in range(40)]
    shared = rng.choices(range(97), k=rng.choice([0, 100]))
    all_of_them: list[GenerationState] = []
    limit = 100 + sum(n_prompt + n_answer for n_prompt, n_answer in coming)
    while len(all_of_them) < len(coming) or engine.scheduler.busy:
        if len(all_of_them) < len(coming) and rng.random() < 0.3:
            n_prompt, n_answer = coming[len(all_of_them)]
            all_of_them.append(engine.add(max(n_prompt, len(shared) + 1), n_answer, shared))
        engine.step()
        assert engine.n_steps < limit, "somebody waits for ever"
    assert all(s.stop_reason == "length" and s.n_generated == s.request.max_tokens for s in all_of_them)
    needed = sum(s.n_prompt + s.n_generated - 1 for s in all_of_them)
    assert engine.n_rows <= 1.5 * needed
    assert max(engine.preempted.values(), default=0) <= 2, "whoever was pushed out comes back to stay"
    engine.store.tree.clear()
    assert all(pool.n_free == pool.n_blocks for pool in engine.store.pools)


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    """It does where batches are filled first come, first served (llama.cpp#6607)."""
    for rows_per_second in (30.0, 256.0, 10_000.0):
        engine = PretendEngine(400)
        engine.scheduler.cost.rows_per_second = rows_per_second
        long = engine.add(20_000, 5)
        engine.step()
        short = engine.add(100, 5)
        for _ in range(8):
            engine.step()
        assert short.n_generated > 0
        assert long.prefilling


def test_a_long_prompt_gets_on_while_short_ones_come() -> None:
    engine = PretendEngine(400)
    engine.scheduler.cost.rows_per_second = 100.0  # a block a step
    long = engine.add(3000, 2)
    n_steps = 0
    while long.prefilling:
        engine.add(70, 1)
        engine.step()
        n_steps += 1
        assert n_steps < 1000
    assert n_steps > 3000 / BLOCK_TOKENS


def test_the_first_chunk_is_a_block_and_those_after_it_are_what_a_second_holds() -> None:
    engine = PretendEngine(400)
    long = engine.add(5000, 1)
    assert dict(engine.step()) == {long: BLOCK_TOKENS}
    for _ in range(4):
        engine.scheduler.cost.observe(0, BLOCK_TOKENS, BLOCK_TOKENS / 400)
    assert 300 <= dict(engine.step())[long] <= 400


def test_the_rows_of_a_step_are_shared() -> None:
    engine = PretendEngine(400)
    engine.scheduler.cost.rows_per_second = 1e6
    sequences = [engine.add(n, 1) for n in (1000, 2000, 40, 3000)]
    work = dict(engine.step())
    assert work[sequences[2]] == 40
    assert sum(work.values()) > MAX_ROWS - 2 * BLOCK_TOKENS
    assert set(work) == set(sequences)


@pytest.mark.parametrize("seed", range(20))
def test_what_has_room_is_not_pushed_out(seed: int) -> None:
    """Whoever is let in can be computed to the end of its prompt without anybody losing a block."""
    rng = random.Random(seed)
    layers = rng.choice([(FULL,), (FULL, WINDOWED), (WINDOWED,)])
    engine = PretendEngine(rng.randrange(14, 60), layers, seed)
    for _ in range(6):
        engine.add(rng.randrange(1, 900), 10_000)
    for _ in range(4):
        engine.step()
    late = engine.add(rng.randrange(1, 900), 1)
    caches = [s.cache for s in engine.scheduler.running if s.cache is not None]
    if any(s.prefilling for s in engine.scheduler.running) or late not in engine.scheduler.waiting:
        return
    if has_room(engine.store, caches, late.n_tokens, late.reusable, MAX_ROWS, 0):
        before = engine.preempted.total()
        while late.stop_reason is None:
            engine.step()
        assert engine.preempted.total() == before


@dataclass
class Demands:
    """What is asked of every step, by brute force: it looks at all sequences anew each time."""

    engine: PretendEngine
    max_running: int
    admitted: list[GenerationState] = field(default_factory=list)  # in the order in which they were first let in
    idle: Counter[int] = field(default_factory=Counter)  # steps since each that runs was computed

    def check(self, work: list[tuple[GenerationState, int]], before: dict[int, tuple[int, bool]]) -> None:
        """`before`: tokens computed, and whether it decoded, when the step began, of each of the step."""
        running, waiting = self.engine.scheduler.running, self.engine.scheduler.waiting
        assert sum(n for _, n in work) <= MAX_ROWS
        assert len(running) <= self.max_running
        for sequence, n in work:
            start, decodes = before[sequence.number]
            end = start + n
            assert n == 1 if decodes else n >= 1
            ends_well = end % BLOCK_TOKENS == 0 or end >= sequence.n_tokens - 1
            assert decodes or ends_well or LEAST_ROWS <= n < BLOCK_TOKENS, "a chunk ends with a block, or is small"
        if any(sequence.is_warm_up for sequence, _ in work):
            assert len(work) == 1, "what is warmed up waits for everybody else"
            assert not waiting
        computed = {sequence.number for sequence, _ in work}
        for sequence in running:
            self.idle[sequence.number] = 0 if sequence.number in computed else self.idle[sequence.number] + 1
            assert self.idle[sequence.number] <= 2 * self.max_running + 1, "one that runs is left waiting"


ARRIVALS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 500), st.integers(1, 60), st.sampled_from([False, False, False, True])),
    min_size=1,
    max_size=30,
)


@settings(max_examples=80, deadline=None)
@given(ARRIVALS, st.integers(12, 60), st.integers(1, 20), st.sampled_from([1.0, 700.0, 1e6]), st.integers(0, 9))
def test_every_step_meets_the_demands(
    arrivals: list[tuple[int, int, int, bool]], n_blocks: int, max_running: int, speed: float, seed: int
) -> None:
    engine = PretendEngine(n_blocks, seed=seed, max_running=max_running)
    engine.scheduler.cost.rows_per_second = speed
    demands = Demands(engine, max_running)
    coming, everybody, wait = list(arrivals), list[GenerationState](), 0
    while coming or engine.scheduler.busy:
        while coming and wait >= coming[0][0]:
            _, n_prompt, n_answer, is_warm_up = coming.pop(0)
            everybody.append(engine.add(n_prompt, n_answer, is_warm_up=is_warm_up))
            wait = 0
        wait += 1
        plan = engine.scheduler.schedule()
        before = {s.number: (s.n_computed, not s.prefilling) for s in (w.sequence for w in plan.work)}
        planned = {s.number for s in (w.sequence for w in plan.work)}
        for sequence in engine.scheduler.running:
            assert sequence.prefilling or sequence.stop_reason or sequence.number in planned, "a decode was left out"
            if sequence not in demands.admitted:
                demands.admitted.append(sequence)
        demands.check([(work.sequence, work.n) for work in plan.work], before)
        engine.take(plan)
        assert engine.n_steps < 40_000, "somebody waits for ever"
    assert all(s.stop_reason == "length" for s in everybody)
    asked = [s for s in demands.admitted if not s.is_warm_up]
    for one, next_one in pairwise(asked):  # first come, first served, but for whoever finds some of its prompt cached
        assert one.number < next_one.number or one.figures.n_cached


def test_a_hundred_sequences_decode_in_one_step() -> None:
    engine = PretendEngine(400)
    engine.scheduler.cost.rows_per_second = 1e6
    sequences = [engine.add(10, 50) for _ in range(100)]
    for _ in range(12):
        engine.step()
    assert {s.number for s, n in engine.step() if n == 1} == {s.number for s in sequences}


@pytest.mark.parametrize("n_running", [MAX_ROWS - LEAST_CHUNK, 1000])
def test_decodes_leave_rows_to_a_prompt(n_running: int) -> None:
    """However many there are: whoever comes too many waits, and a prompt that was let in is read beside the others."""
    engine = PretendEngine(3000)
    engine.scheduler.cost.rows_per_second = 1e6
    for _ in range(n_running - 1):
        engine.add(1, 10_000)
    while len(engine.scheduler.running) < MAX_ROWS - LEAST_CHUNK - 1:
        engine.step()
    if n_running < MAX_ROWS:
        late = engine.add(500, 10)
        engine.step()  # shows what decoding takes by itself
        for _ in range(1 + 500 // BLOCK_TOKENS):
            assert sum(n for _, n in engine.step()) >= MAX_ROWS - LEAST_CHUNK
        assert not late.prefilling
    else:
        assert sum(n for _, n in engine.step()) == len(engine.scheduler.running) == MAX_ROWS - LEAST_CHUNK


@pytest.mark.parametrize("ctx", [1, 1024, 32_768, 1 << 20])
def test_sequences_leave_rows_to_prompts(ctx: int) -> None:
    assert 1 <= max_sequences(ctx) <= MAX_ROWS - LEAST_CHUNK


def test_texts_alone_are_not_held_back_by_what_an_image_needs() -> None:
    """An image whose rows see each other both ways is computed in one step, beside all that decode."""
    engine = PretendEngine(2000)
    engine.scheduler.cost.rows_per_second = 1e6
    texts = [engine.add(3, 40) for _ in range(300)]
    while not all(one.n_generated for one in texts):
        engine.step()
        assert engine.n_steps < 100
    assert len(engine.scheduler.running) == 300
    span = ImageSpan(b"x" * 16, 280, sees_itself=True)
    source = ImageSource(span, lambda progress, cancel: ImageRows(np.zeros((280, 1), np.float32)))
    prompt = (1, *image_ids(span.digest, span.n_rows), 2)
    asked = replace(greedy(list(prompt), 4), images=RequestImages(7, {span.digest: source}))
    seeing, late = GenerationState(asked), [engine.add(3, 4) for _ in range(20)]
    assert seeing.images is not None
    for place in seeing.images.places:
        place.rows = source.rows(lambda share: None, CancelFlag())
    engine.scheduler.add(seeing)
    late += [engine.add(3, 4) for _ in range(20)]
    chunks = []
    while seeing.stop_reason is None:
        work = engine.step()
        running = engine.scheduler.running
        assert len(running) <= BESIDE_SPANS or all(sequence is not seeing for sequence in running)
        chunks += [n for sequence, n in work if sequence is seeing]
        assert engine.n_steps < 500, "it waits for ever"
    assert max(chunks) >= 280
    while engine.scheduler.busy:
        engine.step()
        assert engine.n_steps < 1000
    assert all(one.stop_reason for one in (*texts, *late))

"""Prompts that are read in bulk round otherwise than answers: what was computed in one way is never used for the other,
and little is computed twice."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from localrun_testing.chained_executor import ChainedExecutor, truth
from localrun_testing.small_model import FULL, finish, greedy, small_model, text

from localrun.cache.bulk import MARK, bulk_tokens
from localrun.cache.reuse import WHY_AGAIN
from localrun.cache.store import CacheStore
from localrun.engine import generation
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationState
from localrun.engine.runner import Runner
from localrun.engine.step_plan import StepPlan
from localrun.ops.interface import CancelFlag, Logits
from localrun.storage.block_files import BlockFiles
from localrun.storage.disk_cache import DiskCache
from localrun.storage.label import Label

SPAN, CTX, N_BLOCKS = 128, 2048, 100


class Watched:
    """An engine on a ChainedExecutor: every step is held against the truth, and counts what it computes."""

    def __init__(self, span: int = SPAN, disk: Path | None = None) -> None:
        config = small_model((FULL,)).config
        self.executor = ChainedExecutor(N_BLOCKS, span)
        runner = Runner(config, self.executor)
        store = CacheStore(runner.groups, [N_BLOCKS], (), runner.copy)
        cache = None
        if disk is not None:
            tier = BlockFiles(disk, "chained", runner.block_sizes, Label("m", "p", "x", "f16", "w", 1, 64))
            cache = DiskCache(store, tier, runner.read, runner.write, 1 << 30)
        self.engine = Engine(runner, store, CTX, disk=cache)
        self.computed: Counter[int] = Counter()  # rows by position
        self.wrong = 0
        self.run = runner.run
        runner.run = self.watched  # type: ignore[method-assign]

    def watched(self, plan: StepPlan, cancel: CancelFlag | None = None) -> Logits:
        logits = self.run(plan, cancel)
        for work, found in zip(plan.work, self.executor.found, strict=True):
            sequence, n = work.sequence, work.n
            self.computed.update(range(sequence.n_computed, sequence.n_computed + n))
            n_bulk = bulk_tokens(sequence.n_prompt, self.executor.bulk_span)
            self.wrong += found != truth(sequence.token_ids[: sequence.n_computed + n], n_bulk)
        return logits

    def ask(self, prompt: list[int], n_answer: int, chat: str = "") -> GenerationState:
        return finish(self.engine.submit(replace(greedy(prompt, n_answer), chat=chat)))


@contextmanager
def watched(span: int = SPAN, disk: Path | None = None) -> Iterator[Watched]:
    one = Watched(span, disk)
    try:
        yield one
    finally:
        one.engine.close()


def random_chats(one: Watched, seed: int, turns: int) -> int:
    """Turns, edits, branches, regenerated and stopped answers -> tokens that were not computed again."""
    dice, chats, saved = random.Random(seed), [], 0
    prompt = text(300, seed)
    for turn in range(turns):
        one.engine.scheduler.cost.rows_per_second = dice.choice((64.0, 200.0, 5000.0))  # chunks of other sizes
        done = one.ask(prompt, dice.randint(1, 200), chat="a")
        saved += done.figures.n_cached
        chats.append(done.token_ids)
        what = dice.random()
        if what < 0.5:
            prompt = done.token_ids + text(dice.randint(1, 90), turn)
        elif what > 0.6:
            prompt = dice.choice(chats)
            prompt = prompt[: dice.randint(len(prompt) // 2, len(prompt))] + text(dice.randint(1, 40), turn)
        prompt = prompt[:1500]
    return saved


@pytest.mark.parametrize("seed", range(6))
def test_what_is_reused_is_what_would_be_computed(seed: int) -> None:
    with watched() as one:
        assert random_chats(one, seed, 30) > 3000
        assert not one.wrong


@pytest.mark.parametrize("seed", range(3))
def test_chats_go_on_from_the_disk(seed: int, tmp_path: Path) -> None:
    for part in range(3):
        with watched(disk=tmp_path) as one:
            one_more = one.ask(text(300, seed), 1, chat="a")
            assert bool(one_more.figures.n_restored) == (part > 0)
            random_chats(one, seed, 10 + part)
            assert not one.wrong


def test_without_the_mark_values_are_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same chats, with keys that do not tell how a token was read."""
    monkeypatch.setattr(generation, "keys_of", lambda prompt, span: prompt)
    with watched() as one:
        random_chats(one, 0, 30)
        assert one.wrong


def test_what_is_known_of_a_prompt_is_told_by_its_keys() -> None:
    with watched() as one:
        prompt = text(400)
        prompt = one.ask(prompt, 3).token_ids[:390] + text(20, 1)
        known = one.engine.n_known(prompt)
        assert known > SPAN
        assert one.ask(prompt, 1).figures.n_cached == known


def test_side_by_side_in_chunks_of_any_size() -> None:
    with watched() as one:
        start = text(400)
        with one.engine.lock:  # beside answers, chunks are small
            handles = [one.engine.submit(greedy(start[: 60 * n] + text(250, n), 30)) for n in range(6)]
        assert all(finish(handle).n_generated == 30 for handle in handles)
        assert not one.wrong
        assert max(one.executor.n_rows) > 200


@pytest.mark.parametrize("seed", range(4))
def test_how_much_a_chat_computes_again(seed: int) -> None:
    """In turns in which no span fills up nothing; in others what comes after the last one that was full: less than a
    span of the prompt before, and its answer. So each token is computed three times at most: written, read again at
    the end of a prompt, and in bulk."""
    dice, prompt, known, in_bulk = random.Random(seed), text(200, seed), 0, 0
    with watched() as one:
        while len(prompt) < 1500:
            done = one.ask(prompt, dice.randint(1, 150))
            now = bulk_tokens(len(prompt), SPAN)
            assert done.figures.n_cached == (known if now == in_bulk else in_bulk)
            assert ("read again" in done.figures.note) == (now > in_bulk and known > in_bulk)
            known, in_bulk = done.n_tokens - 1, now
            prompt = done.token_ids + text(dice.randint(1, 60), len(prompt))
        assert not one.wrong
        assert max(one.computed.values()) <= 3


def test_the_reason_is_told() -> None:
    """A prompt that goes on, and one that ends earlier."""
    for first, second in ((200, 400), (400, 250)):
        with watched() as one:
            one.ask(text(first), 1)
            assert one.ask(text(second), 1).figures.note == f"read again from token 128 on: {WHY_AGAIN}"
            last = text(second)[-2] ^ 1
            other = one.ask([*text(second)[:-2], last, 0], 1)
            assert other.figures.note == f"differs at token {second - 2} from what was kept"


def test_where_nothing_is_read_in_bulk_keys_are_ids() -> None:
    state = GenerationState(greedy(text(600)))
    assert state.keys is state.token_ids
    marked = GenerationState(greedy(text(600)), SPAN)
    assert marked.keys == [token | MARK for token in text(600)[:512]] + text(600)[512:]
    with watched(span=0) as one:
        random_chats(one, 1, 10)
        assert not one.wrong


@pytest.mark.parametrize("rows_per_second", [1e6, 300.0])
def test_chunks_end_where_spans_do(rows_per_second: float) -> None:
    """Where there are rows for it: a span that is cut takes as long twice."""
    with watched() as one:
        one.engine.scheduler.cost.rows_per_second = rows_per_second
        one.engine.scheduler.cost.observe = lambda n_decodes, n_read, seconds: None  # type: ignore[method-assign]
        one.ask(text(1400), 1)
        assert one.executor.n_rows[0] == (512 if rows_per_second == 1e6 else 256)
        assert all(n % SPAN == 0 for n in one.executor.n_rows[:-1])

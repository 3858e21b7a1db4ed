"""Verifying drafted tokens in one step, and taking back what was computed: to the bit what steps one by one give."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from localrun_testing.cache_engine import GEMMA, LLAMA, MISTRAL, CacheCase
from localrun_testing.small_model import greedy, text

from localrun.backends.cpu.library import load_library
from localrun.cache.store import CacheStore
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationState
from localrun.engine.runner import Runner
from localrun.engine.sampler import SamplerSettings
from localrun.engine.step_plan import StepPlan, StepWork
from localrun.ops.interface import Logits

CASES = {
    **{f"full {codec}": CacheCase(LLAMA, codec, codec) for codec in ("f32", "f16", "q8", "k8v4", "q4")},
    "windows f16": CacheCase(GEMMA),
    "windows q8": CacheCase(GEMMA, "q8", "q8"),
    "long window": CacheCase(MISTRAL),
    "sinks f16": CacheCase(LLAMA, "f16", user_window=128),
    "sinks q4": CacheCase(LLAMA, "q4", user_window=128),
}
PENALTIES = SamplerSettings(temperature=0.7, repeat_penalty=1.3, presence_penalty=0.4, frequency_penalty=0.2)


class Text:
    """A sequence that is computed by hand, beside the engine's own thread."""

    def __init__(self, engine: Engine, prompt: list[int], chat: bool = True) -> None:
        self.runner: Runner = engine.runner
        self.store: CacheStore = engine.store
        self.sequence = GenerationState(replace(greedy(prompt, 100), settings=PENALTIES))
        self.sequence.admit(self.store.open(prompt) if chat else self.store.open_private())

    def step(self, n: int, draft: tuple[int, ...] = (), accepted: int = 0) -> Logits:
        """Compute n tokens and a draft, of which the first `accepted` are kept."""
        s = self.sequence
        assert s.cache is not None
        self.store.extend(s.cache, s.n_computed, s.n_computed + n + len(draft))
        logits = self.runner.run(StepPlan((StepWork(s, n, draft),)))
        s.n_computed += n + accepted
        for token in draft[:accepted]:
            s.append(token, 0.0)
        self.store.commit(s.cache, s.token_ids, s.n_computed)
        return logits

    def read(self, chunk: int = 64) -> np.ndarray:
        """Compute all there is -> the last row of logits."""
        row = np.zeros(0)
        while (left := self.sequence.n_tokens - self.sequence.n_computed) > 0:
            row = np.array(self.step(min(chunk, left)).row(0))
        return row

    def close(self) -> None:
        assert self.sequence.cache is not None
        self.store.close(self.sequence.cache, ())


@contextmanager
def engine_of(case: CacheCase, native: bool) -> Iterator[Engine]:
    engine = case.engine(native)
    try:
        yield engine
    finally:
        engine.close()


@pytest.mark.skipif(load_library() is None, reason="no native library")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_draft_is_verified_in_one_step_as_in_many(case: CacheCase) -> None:
    """Argmax and penalised logits of every drafted token; what follows after only some of them is kept, too."""
    check_verified(case, native=True)


@pytest.mark.parametrize("name", CASES)
def test_so_it_is_on_the_reference(name: str) -> None:
    check_verified(CASES[name], native=False)


def check_verified(case: CacheCase, native: bool) -> None:
    prompt, draft = text(125), (5, 7, 7, 90, 5, 11)
    with engine_of(case, native) as engine:
        one, many = Text(engine, prompt, chat=False), Text(engine, prompt, chat=False)
        assert one.step(124).row(0).tobytes() == many.step(124).row(0).tobytes()
        verified = one.step(1, draft, accepted=4)
        found = [(int(verified.argmax[row]), verified.row(row).tobytes()) for row in range(len(draft) + 1)]
        for row in range(len(draft) + 1):
            logits = many.step(1)
            assert (int(logits.argmax[0]), logits.row(0).tobytes()) == found[row]
            if row < len(draft):
                many.sequence.append(draft[row], 0.0)
        other = Text(engine, [*prompt, *draft[:4]], chat=False)
        other.sequence.counts = one.sequence.counts
        other.read()
        for text_ in (one, other):
            text_.sequence.append(42, 0.0)
        assert one.read().tobytes() == other.read().tobytes()


LENGTHS = [(150, 149), (150, 128), (150, 127), (199, 70), (260, 5), (70, 0)]  # of a text, and what is left of it


@pytest.mark.skipif(load_library() is None, reason="no native library")
@pytest.mark.parametrize(("n_text", "n_left"), LENGTHS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_taken_back_leaves_no_trace(case: CacheCase, n_text: int, n_left: int) -> None:
    check_taken_back(case, True, n_text, n_left)


@pytest.mark.parametrize("number", range(len(CASES)), ids=CASES)
def test_nor_on_the_reference(number: int) -> None:
    """One length a case, and a case or two a length: it is slow."""
    check_taken_back([*CASES.values()][number], False, *LENGTHS[number % len(LENGTHS)])


@pytest.mark.slow
@pytest.mark.parametrize(("n_text", "n_left"), LENGTHS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nor_at_any_length_on_the_reference(case: CacheCase, n_text: int, n_left: int) -> None:
    check_taken_back(case, False, n_text, n_left)


def check_taken_back(case: CacheCase, native: bool, n_text: int, n_left: int) -> None:
    """What is computed over the first `n_left` of `n_text` tokens is what it is where the others never were."""
    with engine_of(case, native) as engine:
        ids = text(n_text, seed=1)
        again, fresh = [*ids[:n_left], *text(40, seed=2)], None
        back = Text(engine, ids)
        back.read()
        assert back.sequence.cache is not None
        start = back.store.truncate(back.sequence.cache, n_left)
        assert start <= n_left
        back.sequence = replace_ids(back.sequence, again, start)
        fresh = Text(engine, again, chat=False)
        assert back.read(17).tobytes() == fresh.read(40).tobytes()
        back.close()
        fresh.close()


def replace_ids(sequence: GenerationState, ids: list[int], n_computed: int) -> GenerationState:
    """The same cache under another text."""
    other = GenerationState(replace(sequence.request, prompt=tuple(ids)))
    other.cache, other.n_computed = sequence.cache, n_computed
    return other

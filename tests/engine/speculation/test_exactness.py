"""Answers with drafts are those without, to the bit: every kind of layer, codec and sampling, and every way to end."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from localrun_testing.cache_engine import (
    GEMMA,
    GPT_OSS,
    GRANITE_H,
    HYBRID,
    LATENTS,
    LFM,
    LLAMA,
    MISTRAL,
    NEMOTRON_H,
    SHARING,
    CacheCase,
)
from localrun_testing.drafts import Exactly, Guesses, speculate
from localrun_testing.small_model import finish, greedy, text

from localrun.backends.cpu.library import load_library
from localrun.base.errors import ModelFileError
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationRequest
from localrun.engine.handle import EngineEvent, Finished, GenerationHandle
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation.lookup import Lookup
from localrun.engine.step_plan import StepPlan
from localrun.ops.interface import CancelFlag, Logits

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")

LAYERS = {
    "llama": LLAMA,
    "gemma": GEMMA,
    "mistral": MISTRAL,
    "gpt-oss": GPT_OSS,
    "sharing": SHARING,
    "hybrid": HYBRID,
    "granite-h": GRANITE_H,
    "nemotron-h": NEMOTRON_H,
    "lfm": LFM,
    "latents": LATENTS,
}
CASES = {
    **{
        f"{name} {codec}": CacheCase(layers, codec, codec) for name, layers in LAYERS.items() for codec in ("f16", "q8")
    },
    **{f"llama {codec}": CacheCase(LLAMA, codec, codec) for codec in ("f32", "k8v4", "q4")},
    "sinks f16": CacheCase(LLAMA, user_window=128),
    "sinks q4": CacheCase(LLAMA, "q4", user_window=128),
    "no room": CacheCase(LLAMA, "q8", n_blocks=9, ring_blocks=9),
}
PENALTIES = SamplerSettings(0.7, repeat_penalty=1.3, presence_penalty=0.4, frequency_penalty=0.2)
QUOTED = text(40)


def asked(n: int = 70) -> list[GenerationRequest]:
    """Greedy, at a temperature, with penalties, with logprobs, and one that ends at a stop token."""
    prompts = [[*QUOTED, *text(20 + 17 * seed, seed), *QUOTED] for seed in range(5)]
    plain = [greedy(prompt, n) for prompt in prompts]
    return [
        plain[0],
        replace(plain[1], settings=SamplerSettings(0.7), seed=7),
        replace(plain[2], settings=PENALTIES, seed=8, logit_bias={3: 2.0}),
        replace(plain[3], settings=SamplerSettings(1.2), seed=9, logprobs=2),
        replace(plain[4], stop_ids=frozenset(range(0, 97, 30))),
    ]


def told(handle: GenerationHandle) -> list[EngineEvent]:
    """All events but the end."""
    return [event for event in handle if not isinstance(event, Finished)]


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    opened = CASES[request.param].engine(native=True)
    yield opened
    opened.close()


@pytest.mark.parametrize("engine", CASES, indirect=True)
def test_answers_are_the_same_with_drafts(engine: Engine) -> None:
    """One at a time and side by side, by lookup, and by drafters that are often right, or hardly ever."""
    requests = asked()
    before, texts = list[list[EngineEvent]](), list[list[int]]()
    for request in requests:
        handle = engine.submit(request)
        before.append(told(handle))
        texts.append(handle.sequence.token_ids)
    for new_drafter in (Lookup, partial(Guesses, texts, 0.8), partial(Guesses, texts, 0.1)):
        speculate(engine, new_drafter)
        handles = [engine.submit(request) for request in requests]
        assert [without_prefill(told(handle)) for handle in handles] == [*map(without_prefill, before)]
        assert all(handle.sequence.cache is None for handle in handles)
        for request, expected in zip(requests, before, strict=True):
            assert without_prefill(told(engine.submit(request))) == without_prefill(expected)
    assert sum(handle.sequence.figures.n_drafted for handle in handles) > 100, "something was drafted"


def without_prefill(events: list[EngineEvent]) -> list[EngineEvent]:
    """What does not depend on how much of a prompt was cached."""
    return [event for event in events if type(event).__name__ != "Prefill"]


@pytest.mark.parametrize("engine", ["llama q8", "gemma q8", "hybrid f16", "nemotron-h f16", "sinks q4"], indirect=True)
def test_a_turn_goes_on_from_what_drafts_left(engine: Engine) -> None:
    """Blocks and states in the prefix tree are those of accepted tokens only."""
    prompt = text(90)
    turns = [text(n, n) for n in (30, 7, 64, 1, 50)]
    answers = []
    for right in (None, 0.7, 0.3):
        engine.store.tree.clear()
        ids = list(prompt)
        for n, turn in enumerate(turns):
            speculate(engine, None)
            alone = finish(engine.submit(greedy(ids, 60))).token_ids if right else []
            engine.store.tree.clear() if not n else None
            speculate(engine, None if right is None else partial(Guesses, [alone], right))
            ids = [*finish(engine.submit(greedy(ids, 60))).token_ids, *turn]
        answers.append(ids)
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("engine", ["llama q8", "gemma f16", "hybrid f16", "granite-h f16", "lfm f16"], indirect=True)
def test_every_split_of_eight_rows_at_every_distance_from_a_block_border(engine: Engine) -> None:
    for n_prompt in range(120, 128):
        request = greedy(text(n_prompt, n_prompt), 24)
        answer = finish(engine.submit(request)).token_ids
        for n_right in range(8):
            speculate(engine, partial(Exactly, answer, 7, n_right))
            engine.store.tree.clear()
            done = finish(engine.submit(request))
            assert done.token_ids == answer, (n_prompt, n_right)
            assert (done.figures.n_accepted > 0) == (n_right > 0)
            assert done.figures.accepted_in(24) == done.figures.n_accepted
        speculate(engine, None)


@pytest.mark.parametrize("engine", ["hybrid f16", "lfm f16"], indirect=True)
def test_tokens_that_a_state_takes_back_are_no_prompt(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are computed again with the next token, and drafts after it: the answer waits for no turn among prompts."""
    request, run, again = greedy(text(100), 40), engine.runner.run, list[int]()
    answer = finish(engine.submit(request)).token_ids

    def watched(plan: StepPlan, cancel: CancelFlag | None = None) -> Logits:
        for work in plan.work:
            assert not (work.sequence.n_generated and work.sequence.prefilling)
            again.append(work.n if work.sequence.n_generated else 0)
        return run(plan, cancel)

    monkeypatch.setattr(engine.runner, "run", watched)
    speculate(engine, partial(Exactly, answer, 7, 3))
    assert finish(engine.submit(request)).token_ids == answer
    assert max(again) == 9, "four with the newest, and once more as many: then a step without drafts"


@pytest.mark.parametrize("engine", ["llama f16", "hybrid f16"], indirect=True)
@pytest.mark.parametrize("n_tokens", range(1, 9))
def test_an_answer_ends_at_its_limit_within_a_draft(engine: Engine, n_tokens: int) -> None:
    request = greedy(text(60), 20)
    answer = finish(engine.submit(request)).token_ids
    speculate(engine, partial(Exactly, answer, 7, 7))
    done = finish(engine.submit(replace(request, max_tokens=n_tokens)))
    assert (done.token_ids, done.stop_reason) == (answer[: 60 + n_tokens], "length")
    stop = answer[60 + n_tokens]
    first = answer.index(stop, 60)
    done = finish(engine.submit(replace(request, stop_ids=frozenset([stop]))))
    assert (done.token_ids, done.stop_reason) == (answer[:first], "stop")


@pytest.mark.parametrize("engine", ["llama f16"], indirect=True)
@pytest.mark.parametrize("n_finite", [2, 4])
def test_rows_after_the_first_difference_decide_nothing(
    engine: Engine, n_finite: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three drafts are right: that the row after the fourth token is no number is no error, an earlier one is."""
    request, run = greedy(text(60), 20), engine.runner.run
    answer = finish(engine.submit(request)).token_ids

    def poisoned(plan: StepPlan, cancel: CancelFlag | None = None) -> Logits:
        logits = run(plan, cancel)
        return replace(logits, finite=np.arange(len(logits.finite)) < n_finite)

    monkeypatch.setattr(engine.runner, "run", poisoned)
    speculate(engine, partial(Exactly, answer, 7, 3))
    handle = engine.submit(request)
    if n_finite > 3:
        assert finish(handle).token_ids == answer
        return
    with pytest.raises(ModelFileError, match="not numbers"):
        finish(handle)
    assert handle.sequence.token_ids == answer[: 60 + 1 + n_finite], "what came before it was told"


@pytest.mark.parametrize("rolls", [False, True])
def test_at_the_end_of_the_context(rolls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = CacheCase(LLAMA, ctx=256, rolls=rolls).engine(native=True)
    ends, run = list[int](), engine.runner.run

    def watched(plan: StepPlan, cancel: CancelFlag | None = None) -> Logits:
        ends.extend(work.sequence.n_computed + work.n_rows for work in plan.work)
        return run(plan, cancel)

    try:
        request = replace(greedy(text(200), 150), rolls=rolls)
        plain = finish(engine.submit(request))
        speculate(engine, partial(Exactly, plain.token_ids, 15, 15))
        monkeypatch.setattr(engine.runner, "run", watched)
        drafted = finish(engine.submit(request))
        assert (drafted.token_ids, drafted.stop_reason) == (plain.token_ids, plain.stop_reason)
        assert drafted.n_generated == (150 if rolls else 56)
        assert drafted.figures.n_accepted > 30
        assert max(ends) == drafted.n_tokens - 1, "no row for what cannot be part of the answer"
    finally:
        engine.close()

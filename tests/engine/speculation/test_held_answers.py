"""Drafts of answers held to a constraint: the answers are those without drafts."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from localrun_testing.cache_engine import GEMMA, HYBRID, LLAMA, CacheCase
from localrun_testing.drafts import Exactly, Guesses, speculate
from localrun_testing.letters import END, LANGUAGES, TRIGGER, held, letter_constraints
from localrun_testing.small_model import finish, greedy, text
from localrun_testing.waiting import until

from localrun.backends.cpu.library import load_library
from localrun.base.constraint import Constraint
from localrun.engine.constrained import Constrained
from localrun.engine.constraints import Constraints
from localrun.engine.generation import GenerationRequest
from localrun.engine.handle import GenerationHandle, NewToken
from localrun.engine.sampler import SamplerSettings

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")

CASES = {
    "full": CacheCase(LLAMA, "q8"),
    "windows": CacheCase(GEMMA, "q8", window_blocks=8),
    "recurrent": CacheCase(HYBRID, "q8", window_blocks=24),
}
HOT = SamplerSettings(temperature=1.5, top_k=0, top_p=0.9, min_p=0.01, repeat_penalty=1.3, presence_penalty=0.5)
LETTERS_ONLY = Constraint("regex", "[a-f]{40}")  # nothing is forced
CALL = Constraint("lark", f"start: <[{TRIGGER}]> /(ab|b[cd]){{9}}x?/")


@pytest.fixture(scope="module")
def constraints() -> Iterator[Constraints]:
    made = letter_constraints()
    yield made
    made.close()


def asked(constraints: Constraints) -> list[GenerationRequest]:
    """Greedy and hot, with logprobs and without; free up to a trigger, which comes sooner or later."""
    of_words = [*(language.constraint for language in LANGUAGES.values()), LETTERS_ONLY]
    requests = []
    for seed, (constraint, settings, logprobs) in enumerate(
        itertools.product(of_words, (SamplerSettings(temperature=0.0), HOT), (None, 1))
    ):
        request = replace(greedy(text(50 + 7 * seed, seed), 60), settings=settings, seed=seed, logprobs=logprobs)
        requests.append(held(constraints, constraint, request))
    for seed, likely in enumerate((2.0, 4.0, 8.0)):
        request = replace(greedy(text(60, seed), 60), settings=HOT, seed=seed, logit_bias={TRIGGER: likely})
        requests.append(held(constraints, CALL, request, TRIGGER))
    return requests


def told(handle: GenerationHandle) -> list[NewToken]:
    """The tokens of an answer."""
    return [event for event in handle if isinstance(event, NewToken)]


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_the_same_with_drafts(constraints: Constraints, name: str) -> None:
    """Alone and side by side; drafted tokens are right often, hardly ever, or forbidden."""
    requests = asked(constraints)
    engine = CASES[name].engine(native=True)
    try:
        before = [told(engine.submit(request)) for request in requests]
        texts = [
            [*request.prompt, *(token.token_id for token in one)] for request, one in zip(requests, before, strict=True)
        ]
        n_drafted = n_accepted = 0
        for right in (0.9, 0.1):
            speculate(engine, partial(Guesses, texts, right))
            handles = [engine.submit(request) for request in requests]
            assert [told(handle) for handle in handles] == before
            assert [told(engine.submit(request)) for request in requests] == before
            n_drafted += sum(handle.sequence.figures.n_drafted for handle in handles)
            n_accepted += sum(handle.sequence.figures.n_accepted for handle in handles)
        assert n_drafted > 100
        assert n_accepted > 20
    finally:
        engine.close()


@pytest.mark.parametrize("name", CASES)
def test_a_mask_that_is_late_within_a_draft_loses_nothing(
    constraints: Constraints, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokens before it are kept, and the next one is chosen from the logits that are there."""
    monkeypatch.setattr("localrun.engine.constrained.SOON_SECONDS", 0.0)
    n_late, take_ready = 0, Constrained.can_choose_soon

    def late(constraint: Constrained) -> bool:
        nonlocal n_late
        is_ready = take_ready(constraint)
        n_late += not is_ready
        return is_ready

    monkeypatch.setattr(Constrained, "can_choose_soon", late)
    request = held(constraints, LETTERS_ONLY, replace(greedy(text(70), 60), settings=HOT, seed=3))
    engine = CASES[name].engine(native=True)
    try:
        answer = finish(engine.submit(request)).token_ids
        for depth in (1, 4, 7):
            speculate(engine, partial(Exactly, answer, depth, depth))
            assert finish(engine.submit(request)).token_ids == answer
        assert n_late
    finally:
        engine.close()


@pytest.mark.parametrize("name", CASES)
def test_a_late_mask_gives_up_the_drafts_of_its_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grammar slower than a step: an answer beside it goes on, and the draft is no part of the text."""
    made = letter_constraints()
    submit, kept = made._pool.submit, list[Callable[[], Any]]()

    def slow(*work: Any) -> None:
        kept.append(partial(submit, *work))

    request = held(made, LETTERS_ONLY, replace(greedy(text(70), 40), logprobs=1))
    engine = CASES[name].engine(native=True)
    try:
        before = told(engine.submit(request))
        answer = [*request.prompt, *(token.token_id for token in before)]
        speculate(engine, partial(Exactly, answer, 4, 4))
        monkeypatch.setattr(made._pool, "submit", slow)
        handle = engine.submit(request)
        while not handle.is_over:
            until(lambda: bool(kept) or handle.is_over)
            assert finish(engine.submit(greedy(text(20), 5))).stop_reason == "length"
            for start in [kept.pop(0) for _ in list(kept)]:
                start()
        assert told(handle) == before
    finally:
        engine.close()
        made.close()


def test_an_end_within_a_draft_ends_the_answer(constraints: Constraints) -> None:
    word = LANGUAGES["regex"]
    engine = CASES["full"].engine(native=True)
    try:
        request = held(constraints, word.constraint, greedy(text(40), 60))
        ended = finish(engine.submit(request))
        assert ended.stop_reason == "stop"
        speculate(engine, partial(Exactly, [*ended.token_ids, END, 1, 2, 3], 7, 7))
        again = finish(engine.submit(request))
        assert (again.token_ids, again.stop_reason) == (ended.token_ids, "stop")
    finally:
        engine.close()

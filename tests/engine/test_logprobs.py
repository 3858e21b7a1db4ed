"""Logprobs are those of the model, whatever is cached, beside it, or done to the logits: bit for bit."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.cache_engine import GEMMA, HYBRID, LLAMA, CacheCase
from localrun_testing.small_model import VOCAB_SIZE, greedy, text

from localrun.backends.cpu.library import load_library
from localrun.base.errors import UsageError
from localrun.base.events import PromptLogprobs, TokenLogprob, TopLogprob
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import Finished, GenerationHandle, NewToken
from localrun.engine.sampler import SamplerSettings
from localrun.engine.scratch_runs import ScratchRuns

NATIVE = load_library() is not None
CASES = {
    "full f16": CacheCase(LLAMA, "f16"),
    "full q8": CacheCase(LLAMA, "q8"),
    "windows": CacheCase(GEMMA, "q8", window_blocks=8),
    "linear attention": CacheCase(HYBRID, "q8", window_blocks=24),
}
HOT = SamplerSettings(temperature=1.7, top_k=0, repeat_penalty=1.5, presence_penalty=1.0, frequency_penalty=0.5)


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = CASES["full f16"].engine(NATIVE)
    yield engine
    engine.close()


def scored(prompt: list[int], max_tokens: int = 5, **changes: Any) -> GenerationRequest:
    return replace(greedy(prompt, max_tokens), prompt_logprobs=3, logprobs=2, **changes)


def heard(handle: GenerationHandle) -> tuple[list[TokenLogprob], list[TokenLogprob], GenerationState]:
    """What is told of a prompt, of its answer, and how it ended."""
    prompt: list[TokenLogprob] = []
    answer: list[TokenLogprob] = []
    for event in handle:
        if isinstance(event, PromptLogprobs):
            prompt += event.tokens
        elif isinstance(event, NewToken) and event.logprob is not None:
            answer.append(event.logprob)
        elif isinstance(event, Finished):
            return prompt, answer, event.sequence
    raise AssertionError("no end")


def expected(case: CacheCase, ids: list[int], n_tops: list[int]) -> list[TokenLogprob]:
    """All of a text computed at once on an engine of its own, and every probability summed up by hand."""
    engine = case.engine(NATIVE)
    try:
        with ScratchRuns(engine.runner, engine.store) as run:
            logits = run.feed(ids[:-1], 0, range(len(ids) - 1))
        found = [TokenLogprob(ids[0], None)]
        for row, (token_id, n_top) in enumerate(zip(ids[1:], n_tops, strict=True)):
            values = logits.row(row).astype(float)
            total = math.log(sum(math.exp(value - values.max()) for value in values)) + values.max()
            assert logits.logprob(row, token_id) == pytest.approx(values[token_id] - total, abs=1e-5)
            best = sorted(range(VOCAB_SIZE), key=lambda i: (-values[i], i))[:n_top]
            top = tuple(TopLogprob(i, logits.logprob(row, i)) for i in best)
            found.append(TokenLogprob(token_id, logits.logprob(row, token_id), top))
        return found
    finally:
        engine.close()


@pytest.mark.parametrize("name", CASES)
def test_prompt_and_answer_are_told_as_computed_at_once(name: str) -> None:
    case, prompt = CASES[name], text(150)
    engine = case.engine(NATIVE)
    try:
        of_prompt, of_answer, ended = heard(engine.submit(scored(prompt)))
        n_tops = [3] * (len(prompt) - 1) + [2] * 5
        assert of_prompt + of_answer == expected(case, ended.token_ids, n_tops)
        assert (ended.figures.n_cached, ended.figures.prefill_rows) == (0, len(prompt))
        assert ended.figures.note.startswith("read again for the logprobs")
        _, of_cached, cached = heard(engine.submit(replace(scored(prompt), prompt_logprobs=None)))
        assert cached.figures.n_cached > 0, "what was computed for logprobs is kept"
        assert of_cached == of_answer
        assert heard(engine.submit(scored(prompt)))[:2] == (of_prompt, of_answer)
    finally:
        engine.close()


def test_neighbours_and_settings_change_nothing() -> None:
    engine = CASES["full q8"].engine(NATIVE)
    try:
        prompts = [text(20 + 9 * seed, seed) for seed in range(16)]
        asked = [scored(prompt, settings=HOT, seed=seed, logit_bias={3: 9.0}) for seed, prompt in enumerate(prompts)]
        together = [heard(handle) for handle in [engine.submit(request) for request in asked]]
        for request, (of_prompt, of_answer, ended) in zip(asked, together, strict=True):
            plain = heard(engine.submit(replace(request, logprobs=None, prompt_logprobs=None)))[2]
            assert plain.token_ids == ended.token_ids, "to be asked for logprobs changes no answer"
            n_tops = [3] * (len(request.prompt) - 1) + [2] * 5
            assert of_prompt + of_answer == expected(CASES["full q8"], ended.token_ids, n_tops)
    finally:
        engine.close()


def test_a_preempted_generation_repeats_no_logprobs() -> None:
    engine = replace(CASES["full f16"], n_blocks=7).engine(NATIVE)
    try:
        asked = [scored(text(130, seed), max_tokens=120) for seed in (1, 2)]
        with engine.lock:  # they come together: alone, each would have room
            handles = [engine.submit(request) for request in asked]
        together = [heard(handle)[:2] for handle in handles]
        assert together == [heard(engine.submit(request))[:2] for request in asked]
        assert [len(of_prompt) for of_prompt, _ in together] == [130, 130]
    finally:
        engine.close()


def test_the_token_that_ends_an_answer_is_told(engine: Engine) -> None:
    (first,) = heard(engine.submit(scored(text(10), max_tokens=1)))[1]
    request = scored(text(10), stop_ids=frozenset([first.token_id]))
    _, of_answer, ended = heard(engine.submit(request))
    assert (of_answer, ended.stop_reason, ended.n_generated) == ([first], "stop", 0)


def test_a_prompt_alone(engine: Engine) -> None:
    of_prompt, of_answer, ended = heard(engine.submit(scored(text(70), max_tokens=0)))
    assert (len(of_prompt), of_answer, ended.stop_reason, ended.n_generated) == (70, [], "length", 0)
    assert heard(engine.submit(scored([5], max_tokens=1)))[0] == [TokenLogprob(5, None)]


def test_more_than_there_are_is_refused(engine: Engine) -> None:
    for wrong in (-1, 21, True):
        with pytest.raises(UsageError, match="logprobs"):
            engine.submit(replace(greedy([1]), logprobs=wrong))

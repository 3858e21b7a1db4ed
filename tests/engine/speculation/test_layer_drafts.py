"""Drafts of a model's own layer: those of the oracle, at any depth, and answers that are the same to the bit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from localrun_testing.drafts import opened, program_of
from localrun_testing.gguf_convert import convert
from localrun_testing.mtp import DraftOracle, foresee, save_with_mtp
from localrun_testing.oracle import token_ids, transformers
from localrun_testing.small_model import finish, greedy
from localrun_testing.tiny_models import VOCAB_SIZE

from localrun.backends.cpu.library import load_library
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.load import LoadedModel
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation import model_drafts
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.model_drafts import ModelDrafts

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")
Made = Callable[[str], tuple[Path, DraftOracle]]
PENALTIES = SamplerSettings(0.7, repeat_penalty=1.3, presence_penalty=0.4, frequency_penalty=0.2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    @cache
    def make(name: str) -> tuple[Path, DraftOracle]:
        folder = tmp_path_factory.mktemp(name)
        return folder, save_with_mtp(name, folder)

    return make


@pytest.mark.parametrize("name", ["qwen3.5", "qwen3.5-moe"])
def test_guesses_are_those_of_the_oracle(name: str, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a prompt of several steps, after accepted and rejected drafts, and from a prefix that is cached."""
    folder, oracle = made(name)
    model = opened(folder, kv="f32")
    body = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    found: list[tuple[list[int], tuple[int, ...]]] = []
    guesses = program_of(model, ModelDrafts)
    plain = guesses.draft

    def watched(sequences: Sequence[GenerationState], depth: int) -> list[DraftedTokens]:
        drafts = plain(sequences, depth)
        found.extend((list(s.token_ids), draft.tokens) for s, draft in zip(sequences, drafts, strict=True))
        return drafts

    monkeypatch.setattr(guesses, "draft", watched)
    try:
        ids = token_ids(150, VOCAB_SIZE)
        done = finish(model.engine.submit(greedy(ids, 24)))
        finish(model.engine.submit(greedy([*done.token_ids, *token_ids(30, VOCAB_SIZE, seed=5)], 8)))
    finally:
        model.close()
    right = total = 0
    for tokens, draft in found:
        expected = oracle.guess(body, tokens, len(draft))
        right += sum(a == b for a, b in zip(expected, draft, strict=True))
        total += len(draft)
    assert total > 20
    assert right >= 0.95 * total, (right, total)


@pytest.mark.parametrize("file_format", ["safetensors", "gguf"])
def test_a_layer_that_foresees_is_accepted(file_format: str, tmp_path: Path) -> None:
    """A mistake in a hidden row, a position or a norm would leave hardly any."""
    start = foresee("qwen3.5", tmp_path)
    path = tmp_path if file_format == "safetensors" else convert(tmp_path, tmp_path / "m.gguf")
    model = opened(path)
    try:
        done = finish(model.engine.submit(greedy([start], 200)))
    finally:
        model.close()
    assert done.figures.n_drafted > 140
    assert done.figures.n_accepted >= 0.95 * done.figures.n_drafted


@pytest.mark.parametrize("codec", ["f16", "q8"])
@pytest.mark.parametrize("name", ["qwen3.5", "qwen3.5-moe"])
def test_answers_are_the_same(name: str, codec: str, made: Made) -> None:
    """One at a time, side by side, and gone on with."""
    folder, _ = made(name)
    prompts = [token_ids((1, 90, 140, 190)[n], VOCAB_SIZE, seed=n) for n in range(4)]
    plain = [greedy(prompt, 40) for prompt in prompts]
    requests = [
        plain[0],
        replace(plain[1], settings=SamplerSettings(0.7), seed=7),
        replace(plain[2], settings=PENALTIES, seed=8, logit_bias={3: 2.0}),
        replace(plain[3], settings=SamplerSettings(1.2), seed=9, logprobs=2),
    ]
    answers = [list(answered(opened(folder, kv=codec, draft=draft), requests)) for draft in ("off", "mtp")]
    assert answers[0] == answers[1]


def passes_of(guesses: ModelDrafts, monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    """Note every pass of a program in `told`: its rows."""
    run = guesses.program._run

    def watched(texts: Any, ids: Sequence[Sequence[int]], *rest: Any) -> Any:
        told.append(f"pass of {sum(map(len, ids))}")
        return run(texts, ids, *rest)

    monkeypatch.setattr(guesses.program, "_run", watched)


@pytest.mark.parametrize("most", [512, 64])
def test_a_prompt_is_read_after_its_first_token(most: int, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, or the newest tokens of a long one, and answers go on being drafted."""
    monkeypatch.setattr(model_drafts, "MOST_WAITING", most)
    model, told, n = opened(made("qwen3.5")[0]), list[str](), 300
    passes_of(program_of(model, ModelDrafts), monkeypatch, told)
    append = GenerationState.append

    def appended(self: GenerationState, token_id: int, now: float) -> None:
        told.append("token")
        append(self, token_id, now)

    monkeypatch.setattr(GenerationState, "append", appended)
    try:
        done = finish(model.engine.submit(greedy(token_ids(n, VOCAB_SIZE), 30)))
        assert told[0] == "token"
        n_read = sum(int(one.rpartition(" ")[2]) for one in told if one != "token")
        assert n <= n_read < n + 120 if most > n else most <= n_read < most + 190
        assert done.figures.n_drafted > 20
        n_before = len(told)
        finish(model.engine.submit(greedy([*done.token_ids, *token_ids(9, VOCAB_SIZE)], 4)))
        assert told[n_before : n_before + 2] != ["token"] * 2
    finally:
        model.close()


def test_texts_that_nothing_is_drafted_for_take_no_pass(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm-ups do: they have the time."""
    monkeypatch.setattr(model_drafts, "MOST_WAITING", 64)
    model, told = opened(made("qwen3.5")[0]), list[str]()
    passes_of(program_of(model, ModelDrafts), monkeypatch, told)
    try:
        for seed in range(1, 4):
            finish(model.engine.submit(greedy(token_ids(200, VOCAB_SIZE, seed), 1)))
        assert told == []
        warm = model.engine.warm(token_ids(400, VOCAB_SIZE))
        assert warm is not None
        finish(warm)
        finish(model.engine.submit(greedy(token_ids(410, VOCAB_SIZE), 8)))
    finally:
        model.close()
    assert sum(int(one.rpartition(" ")[2]) for one in told) > 400


def test_a_layer_whose_guesses_rest_is_left_alone(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is kept for it; after that it goes on in the middle of an answer."""
    model, kept = opened(made("qwen3.5")[0], prefix_cache=False), list[int]()
    guesses, request = program_of(model, ModelDrafts), greedy(token_ids(100, VOCAB_SIZE), 60)
    assert model.engine.scheduler.speculation is not None
    depths = model.engine.scheduler.speculation.depths
    append = GenerationState.append

    def appended(self: GenerationState, token_id: int, now: float) -> None:
        text = guesses.texts.get(self.number)
        kept.append(0 if text is None else text.n + text.waiting.n)
        depths.guesses_rest = depths.guesses_rest and self.n_generated != 30
        append(self, token_id, now)

    try:
        plain = finish(model.engine.submit(request)).token_ids
        monkeypatch.setattr(GenerationState, "append", appended)
        monkeypatch.setattr(depths, "wish", lambda *parts: 0 if depths.guesses_rest else 3)
        depths.guesses_rest = True
        done = finish(model.engine.submit(request))
    finally:
        model.close()
    assert done.token_ids == plain
    assert not any(kept[:31])
    assert 0 < kept[-1] <= 40
    assert done.figures.n_drafted > 10


def test_nobody_waits_for_a_pass(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache can be looked at while a program drafts."""
    model, told = opened(made("qwen3.5")[0]), list[bool]()
    guesses = program_of(model, ModelDrafts)
    run = guesses.program._run

    def watched(*parts: Any) -> Any:
        told.append(model.engine.lock.locked())
        return run(*parts)

    monkeypatch.setattr(guesses.program, "_run", watched)
    try:
        for _ in range(2):
            finish(model.engine.submit(greedy(token_ids(100, VOCAB_SIZE), 20)))
    finally:
        model.close()
    assert told
    assert not any(told)


def answered(model: LoadedModel, requests: Sequence[GenerationRequest]) -> Iterator[list[int]]:
    engine = model.engine
    try:
        for request in requests:
            done = finish(engine.submit(request))
            yield done.token_ids
            yield finish(engine.submit(greedy([*done.token_ids, *token_ids(9, VOCAB_SIZE)], 20))).token_ids
        for handle in [engine.submit(request) for request in requests]:
            yield finish(handle).token_ids
        if engine.scheduler.speculation is not None:
            assert handle.sequence.figures.n_drafted > 10
            assert not program_of(model, ModelDrafts).texts
    finally:
        model.close()

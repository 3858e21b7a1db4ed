"""Drafts of an assistant of Gemma 4: those of transformers, at any depth, and answers that are the same to the bit."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from localrun_testing.assistants import AssistantOracle, convert_assistant
from localrun_testing.drafts import opened, program_of
from localrun_testing.oracle import token_ids
from localrun_testing.small_model import finish, greedy
from localrun_testing.tiny_models import VOCAB_SIZE, save
from safetensors.torch import load_file, save_file

from localrun.backends.cpu.library import load_library
from localrun.base.errors import ModelFileError, UsageError
from localrun.engine.generation import GenerationState
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation.assistant_drafts import AssistantDrafts
from localrun.engine.speculation.draft_text import Guess
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.fit.estimate import FitRow
from localrun.hub.disk.stored import StoredModel
from localrun.hub.fits import fit_stored

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")


class Made(NamedTuple):
    """A body and its assistant on disk, and the oracle of both."""

    body: Path
    assistant: Path
    oracle: AssistantOracle


Make = Callable[..., Made]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    @cache
    def make(name: str, ordered: bool = False) -> Made:
        folder, oracle = tmp_path_factory.mktemp(name), AssistantOracle(name, ordered)
        return Made(save(name, folder / "body"), oracle.save(folder / "assistant"), oracle)

    return make


def fitted(path: Path, draft: str) -> FitRow:
    """The row of `fit` for the same load."""
    table = fit_stored([StoredModel(path.name, "F32", path, 0, "safetensors", "path")], 1 << 34, 512, draft=draft)
    return next(row for row in table.rows if row.precision == "F32" and row.kv_codec == "f16")


@pytest.mark.parametrize("ordered", [False, True], ids=["all tokens", "clusters"])
@pytest.mark.parametrize("name", ["gemma4", "gemma4-e2b", "gemma4-moe", "gemma4-unified"])
def test_guesses_are_those_of_transformers(
    name: str, ordered: bool, made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the window, after accepted and rejected drafts, and from a prefix that is cached."""
    body, assistant, oracle = made(name, ordered)
    model = opened(body, assistant, kv="f32")
    drafts, found = program_of(model, AssistantDrafts), list[tuple[list[int], tuple[int, ...]]]()
    plain = drafts.draft

    def watched(sequences: Sequence[GenerationState], depth: int) -> list[DraftedTokens]:
        told = plain(sequences, depth)
        found.extend((list(s.token_ids), one.tokens) for s, one in zip(sequences, told, strict=True))
        return told

    monkeypatch.setattr(drafts, "draft", watched)
    try:
        done = finish(model.engine.submit(greedy(token_ids(120, VOCAB_SIZE), 24)))
        finish(model.engine.submit(greedy([*done.token_ids, *token_ids(30, VOCAB_SIZE, seed=5)], 8)))
        finish(model.engine.submit(greedy(token_ids(3, VOCAB_SIZE), 20)))
    finally:
        model.close()
    pairs = [(oracle.guess(ids, len(one))[0], list(one)) for ids, one in found if one]
    assert sum(len(one) for _, one in pairs) > 40
    right = sum(ours == theirs for theirs, ours in pairs)
    assert right >= 0.95 * len(pairs), (right, len(pairs))


@pytest.mark.parametrize("file_format", ["safetensors", "gguf"])
@pytest.mark.parametrize("ordered", [False, True], ids=["all tokens", "clusters"])
def test_logits_are_those_of_transformers(
    ordered: bool, file_format: str, made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, assistant, oracle = made("gemma4", ordered)
    if file_format == "gguf":  # which knows of no clusters
        assistant = convert_assistant(assistant, tmp_path / "mtp.gguf")
        monkeypatch.setattr(oracle.assistant.config, "use_ordered_embeddings", False)
    model = opened(body, assistant, kv="f32")
    drafts, found = program_of(model, AssistantDrafts), list[tuple[np.ndarray, np.ndarray]]()
    plain = drafts._found

    def watched(logits: Any, row: int, hidden: np.ndarray) -> Guess | None:
        if drafts.tokens is None or drafts.clusters is None:
            found.append((np.arange(VOCAB_SIZE), np.array(logits.row(row))))
        else:
            normed = drafts.runner.executor.hidden(1)
            assert normed is not None
            found.append(drafts.tokens.logits(normed[0], logits.top_ids[row, : drafts.clusters.n_used]))
        return plain(logits, row, hidden)

    monkeypatch.setattr(drafts, "_found", watched)
    try:
        done = finish(model.engine.submit(greedy(token_ids(70, VOCAB_SIZE), 3)))
    finally:
        model.close()
    _, expected = oracle.guess(done.token_ids[:71], 1)
    tokens, logits = found[0]
    assert len(tokens) == (50 if ordered and file_format == "safetensors" else VOCAB_SIZE)
    assert np.abs(logits - expected.numpy()[tokens]).max() <= 1e-4


@pytest.mark.parametrize("codec", ["f16", "q8", "q4"])
@pytest.mark.parametrize("name", ["gemma4", "gemma4-e2b"])
def test_answers_are_the_same(name: str, codec: str, made: Make) -> None:
    """One at a time, side by side, gone on with, and cut off by a window of the user."""
    body, assistant, _ = made(name, name == "gemma4")
    settings = [SamplerSettings(0.0), SamplerSettings(0.7), SamplerSettings(1.2, repeat_penalty=1.3)]
    requests = [
        replace(greedy(token_ids((1, 90, 190)[n], VOCAB_SIZE, seed=n), 40), settings=one, seed=n)
        for n, one in enumerate(settings)
    ]
    answers = []
    for window in (None, 96):
        for draft in ("off", assistant):
            model, found = opened(body, draft, kv=codec, window=window), list[list[int]]()
            try:
                for request in requests:
                    done = finish(model.engine.submit(request))
                    more = greedy([*done.token_ids, *token_ids(9, VOCAB_SIZE)], 20)
                    found += [done.token_ids, finish(model.engine.submit(more)).token_ids]
                handles = [model.engine.submit(request) for request in requests]
                ended = [finish(handle) for handle in handles]
                found += [one.token_ids for one in ended]
                if draft != "off":
                    assert sum(one.figures.n_drafted for one in ended) > 30
                    assert not program_of(model, AssistantDrafts).rows
            finally:
                model.close()
            answers.append(found)
    assert answers[0] == answers[1]
    assert answers[2] == answers[3]


def test_its_memory_is_counted(made: Make) -> None:
    """Weights and working memory, and no cache: it reads the model's."""
    for ordered in (False, True):
        body, assistant, _ = made("gemma4", ordered)
        plain, drafting = opened(body, "off"), opened(body, assistant)
        try:
            more = drafting.plan.weights_bytes - plain.plan.weights_bytes
            assert more == drafting.draft_bytes > 4 * (VOCAB_SIZE * 64 + 3 * 64 * 96)
            assert drafting.plan.needed_kv_bytes == plain.plan.needed_kv_bytes
            assert drafting.plan.scratch_bytes > plain.plan.scratch_bytes
            assert drafting.engine.runner.executor.kv_nbytes == plain.engine.runner.executor.kv_nbytes
            assert program_of(drafting, AssistantDrafts).runner.executor.kv_nbytes == 0
        finally:
            plain.close()
            drafting.close()
        found = [fitted(body, draft) for draft in ("auto", str(assistant))]
        assert found[1].weights_bytes - found[0].weights_bytes == more
        assert found[1].kv_bytes == found[0].kv_bytes


def test_other_models_are_refused(made: Make, tmp_path: Path) -> None:
    """By name where a body differs, and where an assistant is asked to answer."""
    _, assistant, _ = made("gemma4")
    llama = save("llama", tmp_path / "llama")
    with pytest.raises(UsageError, match="assistant cannot draft for this model: it drafts for Gemma 4, not for llama"):
        opened(llama, assistant)
    with pytest.raises(UsageError, match="other sizes than those of the model"):
        opened(made("gemma4-e2b").body, assistant)
    with pytest.raises(ModelFileError, match="draft"):
        opened(assistant, "off")
    with pytest.raises(ModelFileError, match="draft"):
        opened(convert_assistant(assistant, tmp_path / "mtp.gguf"), "off")


def test_a_bad_order_of_tokens_is_refused(made: Make, tmp_path: Path) -> None:
    body, assistant, _ = made("gemma4", True)
    name, (config,) = "masked_embedding.token_ordering", assistant.glob("config.json")
    tensors = load_file(assistant / "model.safetensors")
    for number, order in enumerate((torch.zeros(VOCAB_SIZE, dtype=torch.int64), torch.zeros(3, dtype=torch.int8))):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "config.json").write_text(config.read_text())
        save_file({**tensors, name: order}, folder / "model.safetensors", {"format": "pt"})
        with pytest.raises(ModelFileError, match="is no order of all tokens"):
            opened(body, folder)

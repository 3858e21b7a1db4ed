"""Drafts by blocks (DSpark): those of the oracle, from any cache, and answers that are the same to the bit."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.drafts import Guessing, opened, program_of
from localrun_testing.dspark import SIZE, TAPS, DSparkOracle
from localrun_testing.oracle import token_ids
from localrun_testing.small_model import finish, greedy
from localrun_testing.tiny_models import VOCAB_SIZE, save

from localrun.backends.cpu.library import load_library
from localrun.base.errors import ModelFileError, UsageError
from localrun.engine.generation import GenerationState
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation import block_drafts
from localrun.engine.speculation.block_drafts import BlockDrafts
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.step_plan import StepWork
from localrun.fit.draft_memory import draft_memory
from localrun.formats.detect import open_model_file

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")
Made = tuple[Path, Path, DSparkOracle]  # a body and its drafter on disk, and the oracle of both


class WholeBlocks(Guessing):
    """Wishes for all of a block."""

    def wish(self, sequences: Sequence[GenerationState], decoding: Sequence[StepWork], rows: int) -> int:
        return min(SIZE, rows // max(1, len(sequences)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Made]:
    @cache
    def make() -> Made:
        folder, oracle = tmp_path_factory.mktemp("dspark"), DSparkOracle()
        return save("qwen3", folder / "body"), oracle.save(folder / "drafter"), oracle

    return make


def test_blocks_are_those_of_the_oracle(made: Callable[[], Made], monkeypatch: pytest.MonkeyPatch) -> None:
    """After a prompt of several steps, after rejected blocks, and from a prefix that is cached; with their chances."""
    body, drafter, oracle = made()
    monkeypatch.setattr(block_drafts, "LEAST_CHANCE", 0.0)
    model = opened(body, drafter, WholeBlocks(), kv="f32")
    drafts, found = program_of(model, BlockDrafts), list[tuple[list[int], tuple[int, ...]]]()
    chances, plain, likeliest = list[float](), drafts.draft, drafts.program.head.likeliest

    def watched(sequences: Sequence[GenerationState], depth: int) -> list[DraftedTokens]:
        told = plain(sequences, depth)
        found.extend((list(s.token_ids), one.tokens) for s, one in zip(sequences, told, strict=True))
        return told

    class Head:
        def likeliest(self, *row: Any) -> tuple[int, float]:
            token, chance = likeliest(*row)
            chances.append(chance)
            return token, chance

    monkeypatch.setattr(drafts, "draft", watched)
    monkeypatch.setattr(drafts.program, "head", Head())
    try:
        done = finish(model.engine.submit(greedy(token_ids(150, VOCAB_SIZE), 24)))
        finish(model.engine.submit(greedy([*done.token_ids, *token_ids(30, VOCAB_SIZE, seed=5)], 12)))
    finally:
        model.close()
    expected = [oracle.guess(ids) for ids, _ in found]
    assert sum(len(one) for _, one in found) > 100
    for (tokens, _, _), (_, one) in zip(expected, found, strict=True):
        assert tokens[: len(one)] == list(one)
    assert chances[:SIZE] == pytest.approx(expected[0][2], abs=1e-4)


def test_logits_are_those_of_the_oracle(made: Callable[[], Made], monkeypatch: pytest.MonkeyPatch) -> None:
    body, drafter, oracle = made()
    model, rows = opened(body, drafter, WholeBlocks(), kv="f32"), list[Any]()
    program = program_of(model, BlockDrafts).program
    plain = program._chosen

    def watched(logits: Sequence[Any], hidden: Any, token: int) -> Any:
        if not rows:
            rows.extend(row.copy() for row in logits)
        return plain(logits, hidden, token)

    monkeypatch.setattr(program, "_chosen", watched)
    try:
        done = finish(model.engine.submit(greedy(token_ids(70, VOCAB_SIZE), SIZE + 4)))
    finally:
        model.close()
    text = done.token_ids[:71]
    tokens, expected, _ = oracle.guess(text)
    before = oracle.markov_head.markov_w2(oracle.markov_head.markov_w1.weight[[text[-1], *tokens[:-1]]]).detach()
    found = expected - before
    assert max(abs(row - one.numpy()).max() for row, one in zip(rows, found, strict=True)) <= 1e-4


@pytest.mark.parametrize("codec", ["f16", "q8", "q4"])
def test_answers_are_the_same(codec: str, made: Callable[[], Made]) -> None:
    """One at a time, side by side, and gone on with; nothing of them is lost."""
    body, drafter, _ = made()
    settings = [SamplerSettings(0.0), SamplerSettings(0.7), SamplerSettings(1.2, repeat_penalty=1.3)]
    requests = [
        replace(greedy(token_ids((1, 90, 190)[n], VOCAB_SIZE, seed=n), 40), settings=one, seed=n)
        for n, one in enumerate(settings)
    ]
    answers = []
    for draft in ("off", drafter):
        model, found = opened(body, draft, WholeBlocks(), kv=codec), list[list[int]]()
        try:
            for request in requests:
                done = finish(model.engine.submit(request))
                more = greedy([*done.token_ids, *token_ids(9, VOCAB_SIZE)], 20)
                found += [done.token_ids, finish(model.engine.submit(more)).token_ids]
            ended = [finish(handle) for handle in [model.engine.submit(request) for request in requests]]
            found += [one.token_ids for one in ended]
            if draft != "off":
                assert sum(one.figures.n_drafted for one in ended) > 30
                drafts = program_of(model, BlockDrafts)
                drafts.read_ended()
                drafts.program.store.tree.clear()
                assert all(pool.n_free == pool.n_blocks for pool in drafts.program.store.pools)
        finally:
            model.close()
        answers.append(found)
    assert answers[0] == answers[1]


def test_its_memory_is_counted(made: Callable[[], Made]) -> None:
    body, drafter, _ = made()
    plain, drafting = opened(body, "off"), opened(body, drafter, WholeBlocks())
    try:
        more = drafting.plan.weights_bytes - plain.plan.weights_bytes
        assert more == drafting.draft_bytes > 4 * (2 * VOCAB_SIZE * 96 + len(TAPS) * 96 * 96)
        assert drafting.plan.needed_kv_bytes > plain.plan.needed_kv_bytes
        assert drafting.plan.scratch_bytes > plain.plan.scratch_bytes
        weights = drafting.memory(drafting.engine.view())[0]
        assert weights.measured == weights.predicted
        assert draft_memory(str(drafter), open_model_file(body))[1] == more
    finally:
        plain.close()
        drafting.close()


def test_what_does_not_belong_together_is_refused(made: Callable[[], Made], tmp_path: Path) -> None:
    body, drafter, oracle = made()
    with pytest.raises(UsageError, match="drafter cannot draft for this model: it reads hidden rows of 96"):
        opened(save("phi3-longrope", tmp_path / "other"), drafter)
    with pytest.raises(ModelFileError, match="draft model"):
        opened(drafter, "off")
    changed = oracle.save(tmp_path / "changed")
    for key, value, told in (
        ("target_layer_ids", [0, 99], "reads layer 99"),
        ("target_layer_ids", [1, 0], "should ascend"),
        ("target_layer_ids", [0, True], "should be numbers of layers"),
        ("num_target_layers", 36, "it is for a model of 36 layers, this one has"),
        ("num_target_layers", "36", "num_target_layers should be"),
        ("mask_token_id", 300, "draft for this model: its mask is token 300 of 300"),
        ("block_size", 0, "block_size should be"),
        ("markov_head_type", "rnn", "another Markov head"),
    ):
        config = json.loads((drafter / "config.json").read_text())
        (changed / "config.json").write_text(json.dumps({**config, key: value}))
        with pytest.raises((ModelFileError, UsageError), match=told):
            opened(body, changed)

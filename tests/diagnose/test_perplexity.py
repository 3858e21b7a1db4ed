"""Perplexity and the comparison of codecs, against sums over the whole vocabulary written as loops."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from localrun_testing.small_model import VOCAB_SIZE, reference_executor, small_model

from localrun.base.errors import UsageError
from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.cache.store import CacheStore
from localrun.diagnose.perplexity import divergence, losses_of, perplexity, scored_rows, spans
from localrun.engine.load import LoadedModel, load
from localrun.engine.runner import Runner
from localrun.engine.scratch_runs import ScratchRuns

TEXT = "Why is the second token faster than the first? The first has to read the whole prompt. " * 40


def engine(codec: str) -> tuple[Runner, CacheStore]:
    model = small_model()
    runner = Runner(model.config, reference_executor(model, 16, codec))
    return runner, CacheStore(runner.groups, [16] * len(runner.groups), keep_prefixes=False)


@pytest.fixture(scope="module")
def builtin() -> Iterator[LoadedModel]:
    loaded = load(LoadOptions(path=resource("builtin/localrun-tiny.gguf"), ctx=256, threads=1))
    yield loaded
    loaded.engine.close()


@pytest.mark.parametrize("n_tokens", [8, 65, 200])
def test_losses_and_divergences_are_those_of_a_loop_over_the_vocabulary(n_tokens: int) -> None:
    generator = torch.Generator().manual_seed(n_tokens)
    ids = torch.randint(0, VOCAB_SIZE, (n_tokens,), generator=generator).tolist()
    engines = [engine("f16"), engine("f32")]
    first = n_tokens // 2
    losses: list[float] = []
    divergences: list[float] = []
    for targets, (ours, theirs) in scored_rows(engines, ids, first):
        losses.extend(losses_of(ours, targets))
        divergences.extend(divergence(theirs.row(n), ours.row(n)) for n in range(len(targets)))
    whole = []
    for runner, store in engines:
        with ScratchRuns(runner, store) as run:
            whole.append(run.feed(ids, 0, range(n_tokens)).rows.tolist())
    assert len(losses) == len(divergences) == n_tokens - 1 - first
    for place, position in enumerate(range(first, n_tokens - 1)):
        p_ours, p_theirs = (probabilities(rows[position]) for rows in whole)
        assert losses[place] == pytest.approx(-math.log(p_ours[ids[position + 1]]), abs=1e-4)
        expected = sum(p * math.log(p / q) for p, q in zip(p_theirs, p_ours, strict=True))
        assert divergences[place] == pytest.approx(expected, abs=1e-7)
    assert max(divergences) > 1e-9, "f16 is not f32"


def probabilities(row: list[float]) -> list[float]:
    weights = [math.exp(x - max(row)) for x in row]
    return [w / sum(weights) for w in weights]


def test_a_divergence_by_hand() -> None:
    even, only_first, impossible = logits(0.5, 0.5) + 3, logits(1, 0), logits(0, 1)
    assert divergence(logits(0.75, 0.25), even) == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5), abs=1e-7)
    assert divergence(logits(0.5, 0.5), even) == pytest.approx(0.0, abs=1e-7)
    assert divergence(only_first, even) == pytest.approx(math.log(2), abs=1e-7)
    assert divergence(logits(0.75, 0.25), impossible) == math.inf, "a token ruled out that the baseline expects"


def logits(*probabilities: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(probabilities, np.float32))


def test_every_token_is_computed_once_and_few_rows_give_logits() -> None:
    for first, n_tokens in ((0, 1), (32, 64), (700, 1500)):
        steps = list(spans(first, n_tokens))
        assert [p for start, stop in steps for p in range(start, stop)] == list(range(n_tokens))
        assert all(stop - start <= 64 for start, stop in steps if start >= first)


def test_a_codec_compared_with_itself_is_the_same(builtin: LoadedModel) -> None:
    alone = perplexity(builtin, TEXT, ctx=64, max_chunks=2)
    measured = perplexity(builtin, TEXT, ctx=64, max_chunks=2, baseline=builtin.plan.codec.name)
    assert measured.comparison is not None
    assert (measured.comparison.kld_mean, measured.comparison.same_top1) == (0.0, 1.0)
    assert measured.ppl == alone.ppl
    assert alone.comparison is None
    assert measured.tokens == 2 * 31


def test_f16_is_close_to_f32_but_not_the_same(builtin: LoadedModel) -> None:
    compared = perplexity(builtin, TEXT, ctx=128, max_chunks=2, baseline="f32").comparison
    assert compared is not None
    assert 0 < compared.kld_mean < 5e-3  # 16 bits are bf16 where the machine multiplies those
    assert compared.same_top1 > 0.9  # what users say it has not learnt to expect: its beliefs there are even


@pytest.mark.parametrize(
    ("text", "ctx", "baseline", "says"),
    [
        (TEXT, 7, None, "a chunk of 7"),
        (TEXT, 4096, None, "a chunk of 4096"),
        ("too short", 64, None, "fewer than two chunks"),
        (TEXT, 64, "q9", "cannot be kept as 'q9'"),
    ],
)
def test_perplexity_usage_errors(builtin: LoadedModel, text: str, ctx: int, baseline: str | None, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        perplexity(builtin, text, ctx=ctx, baseline=baseline)

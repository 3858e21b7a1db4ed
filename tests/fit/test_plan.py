"""The first plan of what fits: exact bytes, and the largest context that still fits."""

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.small_model import reference_executor, small_model

from localrun.base.errors import DoesNotFitError, UsageError
from localrun.cache.groups import group_layers
from localrun.fit.bytes import kv_bytes, kv_bytes_by_codec, kv_bytes_per_token
from localrun.fit.machine import cpu_limit, memory, peak_rss
from localrun.fit.plan import MARGIN, OVERHEAD, plan_context, scratch_bytes
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec
from localrun.ops.kv import KV_CODECS


def config(n_layers: int, n_heads: int, n_kv_heads: int, head_dim: int, max_context: int = 131072) -> ModelConfig:
    spec = LayerSpec("full", None, 0, n_heads, n_kv_heads, head_dim, 4 * n_heads * head_dim)
    return ModelConfig(
        "llama", n_heads * head_dim, 1000, max_context, 1e-5, (spec,) * n_layers, (RopeSpec(1e4, head_dim),)
    )


@pytest.mark.parametrize(
    ("shape", "tokens", "expected_gib"),
    [
        pytest.param((80, 64, 8, 128), 131072, 40.0, id="70B at 128k"),
        pytest.param((80, 64, 8, 128), 32768, 10.0, id="Qwen2-72B at 32k"),
        pytest.param((40, 40, 40, 128), 4096, 3.125, id="Llama-2-13B at 4k, without grouped heads"),
    ],
)
def test_published_cache_sizes(shape: tuple[int, int, int, int], tokens: int, expected_gib: float) -> None:
    assert kv_bytes(config(*shape), KV_CODECS["f16"], tokens) == expected_gib * 2**30


def test_bytes_by_codec_count_their_scales() -> None:
    sizes = kv_bytes_by_codec(config(1, 8, 2, 128))
    # 2 heads: K and V of 128 dims; one fp16 scale for 8 bit, scale and min for 4 bit
    assert sizes == {"f16": 1024, "q8": 2 * (256 + 4), "k8v4": 2 * (128 + 2 + 64 + 4), "q4": 2 * (128 + 8)}


@pytest.mark.parametrize("codec", ["f32", "f16"])
def test_planned_bytes_are_the_bytes_allocated(codec: str) -> None:
    model = small_model()
    n_blocks = 7
    pool = reference_executor(model, n_blocks, codec).pool
    assert pool.nbytes == kv_bytes(model.config, KV_CODECS[codec], n_blocks * 64)
    assert len(group_layers(model.config.layers)) == 2


@given(st.integers(1, 80), st.sampled_from([1, 2, 8]), st.integers(0, 2**37), st.integers(64, 200_000))
def test_without_a_wish_the_largest_context_that_fits(
    n_layers: int, n_kv_heads: int, budget: int, max_context: int
) -> None:
    shape = config(n_layers, 8, n_kv_heads, 64, max_context)
    codec, weights = KV_CODECS["f16"], 2**30

    def need(ctx: int) -> int:
        blocks = -(-ctx // 64) + 1
        return weights + blocks * 64 * kv_bytes_per_token(shape, codec) + scratch_bytes(shape, ctx) + OVERHEAD + MARGIN

    try:
        plan = plan_context(shape, weights, codec, budget, None)
    except DoesNotFitError:
        assert need(min(64, max_context)) > budget
        return
    assert need(plan.ctx) <= budget
    assert plan.ctx == max_context or need(min(plan.ctx + 64, max_context)) > budget


def test_wishes_are_kept_or_refused_with_numbers() -> None:
    shape = config(80, 64, 8, 128)
    assert plan_context(shape, 0, KV_CODECS["f16"], 2**40, 1000).ctx == 1000
    with pytest.raises(UsageError, match="131,072 this model"):
        plan_context(shape, 0, KV_CODECS["f16"], 2**40, 131073)
    with pytest.raises(UsageError):
        plan_context(shape, 0, KV_CODECS["f16"], 2**40, 0)
    with pytest.raises(DoesNotFitError, match=r"39\.3 GiB"):
        plan_context(shape, int(39.3 * 2**30), KV_CODECS["f16"], 2**35, 4096)


def test_the_machine_answers_with_sane_numbers() -> None:
    now = memory()
    assert 0 < now.available <= now.total
    assert cpu_limit() >= 1
    before = peak_rss()
    held = torch.ones(random.Random(0).randint(40, 41) << 18)
    assert peak_rss() >= before
    assert held.sum() > 0


def test_a_longer_rope_table_is_chosen_by_the_context() -> None:
    rope = RopeSpec(1e4, 4, (1.0, 1.0), (2.0, 3.0), original_context=4096, long_magnitude=1.5)
    shape = replace(config(1, 8, 8, 64), ropes=(rope,))
    assert shape.for_context(4096).ropes[0].divisors == (1.0, 1.0)
    assert shape.for_context(4097).ropes[0].divisors == (2.0, 3.0)
    assert shape.for_context(4097).ropes[0].magnitude == 1.5

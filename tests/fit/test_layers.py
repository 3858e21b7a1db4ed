"""What each kind of layer keeps, against published figures and against counting tokens one by one."""

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.kinds.compressed import Compressed
from localrun.cache.kinds.interface import CacheKind
from localrun.cache.kinds.latent import Latent
from localrun.cache.kinds.recurrent import Recurrent
from localrun.cache.kinds.shared import Shared
from localrun.fit.bytes import cache_bytes, kv_bytes, kv_bytes_by_codec, layer_codecs, state_bytes
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec
from localrun.model.delta_net import DeltaNet
from localrun.ops.kv import KV_CODECS

GIB, MIB = 1 << 30, 1 << 20
F16 = KV_CODECS["f16"]
CSA, HCA = Compressed(4, 512, 128), Compressed(128, 512)


def config(layers: Iterable[LayerSpec], max_context: int = 131072) -> ModelConfig:
    specs = tuple(layers)
    return ModelConfig("llama", 4096, 1000, max_context, 1e-5, specs, (RopeSpec(1e4, specs[0].head_dim),))


def attention(n_heads: int, n_kv_heads: int, head_dim: int, window: int | None = None) -> LayerSpec:
    return LayerSpec("full" if window is None else "window", window, 0, n_heads, n_kv_heads, head_dim, 4096)


@pytest.mark.parametrize(
    ("layers", "tokens", "published_gib"),
    [
        pytest.param([attention(64, 8, 128)] * 80, 131072, 40.0, id="70B at 128k"),
        pytest.param([attention(64, 64, 128)] * 80, 131072, 320.0, id="70B at 128k, without grouped heads"),
        pytest.param([attention(64, 8, 128)] * 80, 32768, 10.0, id="Qwen2-72B at 32k"),
        pytest.param([attention(40, 40, 128)] * 40, 4096, 3.125, id="Llama-2-13B at 4k"),
        pytest.param([attention(32, 8, 128, 4096)] * 32, 32768, 0.5, id="Mistral-7B-v0.1 at 32k"),
        pytest.param(
            [attention(32, 16, 128, 1024)] * 52 + [attention(32, 16, 128)] * 10, 131072, 10.4, id="Gemma-3-27B at 128k"
        ),
    ],
)
def test_published_sizes_of_models_that_run(layers: list[LayerSpec], tokens: int, published_gib: float) -> None:
    # a window's blocks hold up to 64 tokens more than the window
    assert kv_bytes(config(layers), F16, tokens) / GIB == pytest.approx(published_gib, rel=0.02)
    if all(spec.window is None for spec in layers):
        assert kv_bytes(config(layers), F16, tokens) == published_gib * GIB


@pytest.mark.parametrize(
    ("layers", "tokens", "published"),
    [
        pytest.param([Latent(512, 64)] * 61, MIB, 68.625 * GIB, id="DeepSeek-V3 at 1M"),
        pytest.param([Latent(512, 64, 128)] * 61, MIB, 83.875 * GIB, id="DeepSeek-V3.2 at 1M"),
        pytest.param([CSA] * 30 + [HCA] * 31, MIB, 9.6171875 * GIB, id="DeepSeek-V4-Pro at 1M, entries"),
        pytest.param([CSA] * 21 + [HCA] * 20, MIB, 6.71875 * GIB, id="DeepSeek-V4-Flash at 1M, entries"),
        pytest.param([AttentionCache(4, 256, 256)] * 16, 262144, 16384 * MIB, id="Qwen3.6-27B, full layers"),
        pytest.param([AttentionCache(2, 256, 256)] * 12, 262144, 6 * GIB, id="Qwen3-Next-80B, full layers"),
        pytest.param(
            [Recurrent.delta_net(16, 48, 128, 128, 4)] * 48, 262144, 598.5 / 4 * MIB, id="Qwen3.6-27B, states"
        ),
        pytest.param(
            [Recurrent.delta_net(16, 32, 128, 128, 4)] * 36, 262144, 75.375 * MIB, id="Qwen3-Next-80B, states"
        ),
        pytest.param([AttentionCache(8, 64, 64)] * 12, 131072, 3 * GIB, id="gpt-oss-20b, full layers"),
        pytest.param([Shared()] * 20, 131072, 0, id="layers that read another's cache"),
        pytest.param([AttentionCache(1, 512, 0)], 64, 64 * 1024, id="values that are the keys"),
    ],
)
def test_published_sizes_of_other_kinds(layers: list[CacheKind], tokens: int, published: float) -> None:
    assert cache_bytes(layers, tokens, F16) == published


def test_deepseek_v4_with_its_windows() -> None:
    window = AttentionCache(1, 512, 0, window=128)
    whole = cache_bytes([window] * 61 + [CSA] * 30 + [HCA] * 31, MIB, F16)
    assert whole / GIB == pytest.approx(9.625, abs=0.004)


def test_a_state_does_not_grow() -> None:
    mamba = Recurrent.mamba(5120, 16, 4)
    assert mamba.nbytes(1, F16) == mamba.nbytes(10**6, F16) == 4 * (3 * 5120 + 5120 * 16)
    assert Recurrent.mamba(8192, 128, 4, n_groups=8).nbytes(1, F16) == 4 * (3 * (8192 + 2048) + 8192 * 128)


def test_bytes_by_codec_count_their_scales() -> None:
    sizes = kv_bytes_by_codec(config([attention(8, 2, 128)]))
    # 2 heads: K and V of 128 dims; one fp16 scale for 8 bit, scale and min for 4 bit
    assert sizes == {"f16": 1024, "q8": 2 * (256 + 4), "k8v4": 2 * (128 + 2 + 64 + 4), "q4": 2 * (128 + 8)}
    assert kv_bytes_by_codec(config([attention(8, 1, 256)]))["q8"] == 512 + 8  # a scale for each 128 dims


@pytest.mark.parametrize(("head_dim", "name", "most"), [(128, "q8", 0.52), (128, "k8v4", 0.40), (128, "q4", 0.28)])
def test_the_share_of_f16(head_dim: int, name: str, most: float) -> None:
    sizes = kv_bytes_by_codec(config([attention(8, 8, head_dim)]))
    assert sizes[name] <= most * sizes["f16"]


def test_small_windows_stay_f16_beside_a_quantised_codec() -> None:
    layers = config([attention(8, 2, 64), attention(8, 2, 64, 512), attention(8, 2, 64, 4096)])
    assert [codec.name for codec in layer_codecs(layers, KV_CODECS["q8"])] == ["q8", "f16", "q8"]
    assert [codec.name for codec in layer_codecs(layers, KV_CODECS["f32"])] == ["f32"] * 3


@given(
    window=st.one_of(st.none(), st.integers(1, 700)),
    sink=st.booleans(),
    tokens=st.integers(1, 3000),
)
def test_a_window_holds_at_least_what_a_query_sees(window: int | None, sink: bool, tokens: int) -> None:
    """Against the mask: every block with a token that the last query sees must be held, at any position."""
    kept = AttentionCache(1, 64, 64, window, sink)
    held = kept.nbytes(tokens, F16) // (64 * 64 * 4)
    position = tokens - 1
    seen = {t // 64 for t in range(tokens) if window is None or position - t < window or (sink and t < 64)}
    assert len(seen) <= held
    longest = max(_blocks_seen(window, sink, n) for n in range(max(1, tokens - 63), tokens + 1))
    assert held - longest <= (0 if window is None else 1 + sink)


def _blocks_seen(window: int | None, sink: bool, tokens: int) -> int:
    first = 0 if window is None else max(0, tokens - window) // 64
    return (tokens - 1) // 64 - first + 1 + (sink and first > 0)


def test_random_mixtures_add_up() -> None:
    chance = random.Random(5)
    for _ in range(50):
        kinds: list[CacheKind] = [
            CSA,
            HCA,
            Shared(),
            Latent(64, 16),
            AttentionCache(2, 32, 48),
            AttentionCache(1, 64, 0, 100),
        ]
        layers = chance.choices(kinds, k=9)
        n, codec = chance.randint(1, 999), KV_CODECS[chance.choice(["f32", "f16", "q8", "k8v4", "q4"])]
        assert cache_bytes(layers, n, codec) == sum(cache_bytes([layer], n, codec) for layer in layers)


def test_a_state_is_no_price_of_a_token() -> None:
    full, mixer = attention(16, 4, 128), DeltaNet(16, 32, 128, 128, taps=4, eps=1e-6, tiled=True)
    linear = replace(full, kind="recurrent", mixer=mixer)
    hybrid, dense = config([linear, linear, linear, full]), config([full])
    assert kv_bytes_by_codec(hybrid) == kv_bytes_by_codec(dense)
    assert state_bytes(hybrid) == 3 * 4 * (32 * 128 * 128 + 3 * 8192), "a matrix a value head, and three inputs"
    assert state_bytes(dense) == 0

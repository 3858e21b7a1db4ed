"""Models that cannot run yet are sized by their own layers: published figures, from metadata as files have it."""

from typing import Any

import pytest

from localrun.backends.reference.backend import ReferenceBackend
from localrun.cache.kinds.shared import Shared
from localrun.fit.bytes import cache_bytes
from localrun.fit.estimate import Candidate, Question, fit_table
from localrun.fit.rates import Rates
from localrun.fit.shape import make_shape
from localrun.fit.unsupported import unsupported_layers
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec
from localrun.ops.kv import KV_CODECS

GIB, MIB = 1 << 30, 1 << 20
F16 = KV_CODECS["f16"]


def config(n_layers: int, n_kv_heads: int = 8, head_dim: int = 128) -> ModelConfig:
    layer = LayerSpec("full", None, 0, 32, n_kv_heads, head_dim, 4096)
    return ModelConfig("new", 4096, 32000, MIB, 1e-6, (layer,) * n_layers, (RopeSpec(1e4, head_dim),))


def gguf(arch: str, **values: Any) -> dict[str, Any]:
    keys = {f"{arch}.{key.replace('__', '.')}": value for key, value in values.items()}
    return {"general.architecture": arch, **keys}


FLASH = [0, 0, *[4, 128] * 20, 4, 0]  # the last entry is that of the layer that predicts ahead
PRO = [128, 128, *[4, 128] * 29, 4, 0]
QWEN3_NEXT = {
    "linear_conv_kernel_dim": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "full_attention_interval": 4,
}


@pytest.mark.parametrize(
    ("values", "shape", "tokens", "published"),
    [
        pytest.param(
            gguf("deepseek2", attention__kv_lora_rank=512, rope__dimension_count=64),
            config(61, 1, 576),
            MIB,
            68.625 * GIB,
            id="DeepSeek-V3",
        ),
        pytest.param(
            {"model_type": "deepseek_v32", "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128},
            config(61, 128),
            MIB,
            83.875 * GIB,
            id="DeepSeek-V3.2",
        ),
        pytest.param(
            gguf(
                "deepseek4",
                attention__compress_ratios=PRO,
                attention__key_length=512,
                attention__indexer__key_length=128,
                attention__sliding_window=128,
            ),
            config(61, 1, 512),
            MIB,
            9.6171875 * GIB + 61 * 3 * 64 * 1024,
            id="DeepSeek-V4-Pro",
        ),
        pytest.param(
            {"model_type": "deepseek_v4", "compress_ratios": FLASH, "index_head_dim": 128, "sliding_window": 128},
            config(43, 1, 512),
            MIB,
            6.71875 * GIB + 43 * 3 * 64 * 1024,
            id="DeepSeek-V4-Flash",
        ),
        pytest.param(
            {"model_type": "qwen3_next", **QWEN3_NEXT},
            config(48, 2, 256),
            262144,
            6 * GIB + 75.375 * MIB,
            id="Qwen3-Next",
        ),
        pytest.param(
            gguf(
                "qwen3next",
                ssm__conv_kernel=4,
                ssm__state_size=128,
                ssm__group_count=16,
                ssm__time_step_rank=32,
                ssm__inner_size=4096,
                full_attention_interval=4,
            ),
            config(48, 2, 256),
            262144,
            6 * GIB + 75.375 * MIB,
            id="Qwen3-Next, GGUF",
        ),
        pytest.param(
            {"text_config": {"sliding_window": 512, "layer_types": ["sliding_attention"] * 5 + ["full_attention"]}},
            config(6, 1, 256),
            8192,
            (8192 + 5 * 9 * 64) * 1024,
            id="windows by layer",
        ),
        pytest.param(
            gguf("mamba", ssm__conv_kernel=4, ssm__inner_size=5120, ssm__state_size=16),
            config(64),
            MIB,
            64 * 4 * (3 * 5120 + 5120 * 16),
            id="Mamba",
        ),
    ],
)
def test_published_sizes(values: dict[str, Any], shape: ModelConfig, tokens: int, published: float) -> None:
    layers = unsupported_layers(values, shape)
    assert cache_bytes(layers, tokens, F16) == published


def test_layers_that_read_the_cache_of_another() -> None:
    values = gguf("gemma3n", attention__sliding_window=512, attention__shared_kv_layers=10)
    layers = unsupported_layers(values | {"gemma3n.attention.sliding_window_pattern": [True, False] * 15}, config(30))
    assert [type(layer) is Shared for layer in layers] == [False] * 20 + [True] * 10


def test_plain_attention_is_left_to_the_plan() -> None:
    assert unsupported_layers({"model_type": "mixtral", "sliding_window": None}, config(4)) == ()


@pytest.mark.parametrize("bad", [-1, 0, 1 << 60, 1.5, True, "512", None, [], [1, "x"], {"a": 1}])
def test_odd_values_do_no_harm(bad: Any) -> None:
    for name in ("kv_lora_rank", "compress_ratios", "sliding_window", "layer_types", "linear_conv_kernel_dim"):
        values = {"model_type": "x", "sliding_window": 128, name: bad, "text_config": bad}
        assert cache_bytes(unsupported_layers(values, config(3)), 4096, F16) >= 0


def test_the_table_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.fit.usual_sizes.usual_backend", lambda *config: ReferenceBackend())
    plain = make_shape(config(48, 2, 256), tied=True, obstacle="unknown")
    layers = unsupported_layers({"model_type": "qwen3_next", **QWEN3_NEXT}, plain.config)
    hybrid = type(plain)(plain.config, plain.n_params, plain.active_params, plain.obstacle, layers)
    question = Question(64 * GIB, Rates(1e11, 1e12), ctx=65536)
    candidates = [Candidate("Q4_K_M", 4 * GIB, 4 * GIB, 4.9)]
    whole, quarter = (fit_table(shape, candidates, question).rows[0] for shape in (plain, hybrid))
    assert quarter.kv_bytes < 0.27 * whole.kv_bytes
    assert quarter.max_sequences > 3 * whole.max_sequences

"""Files that are sound as files and impossible as models: a ModelFileError each, quickly and in little memory."""

import json
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from localrun_testing.gguf_convert import prepare, write
from localrun_testing.resources import peak_growth

from localrun.base.errors import ModelFileError
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.model.load import read_config, read_weight_refs

TinyFile = Callable[..., Path]
Change = Callable[[gguf.GGUFWriter], None]

MAX_SECONDS, MAX_BYTES = 1.0, 300 << 20
HPARAM, TENSOR = "BAD_HPARAM", "BAD_TENSOR"
TYPES: dict[type, gguf.GGUFValueType] = {
    bool: gguf.GGUFValueType.BOOL,
    int: gguf.GGUFValueType.INT64,
    float: gguf.GGUFValueType.FLOAT32,
    str: gguf.GGUFValueType.STRING,
    list: gguf.GGUFValueType.ARRAY,
}


def check(path: Path) -> None:
    """Everything that is looked at before a weight is read."""
    source = open_safetensors(path) if path.is_dir() else open_gguf(path)
    read_weight_refs(source, read_config(source))


def key(name: str, value: Any) -> Change:
    """Set a key, under the architecture's prefix where the name has a dot in front; ... removes it."""

    def change(writer: gguf.GGUFWriter) -> None:
        keys = writer.kv_data[0]
        full = keys["general.architecture"].value + name if name.startswith(".") else name
        if value is ...:
            del keys[full]
        else:
            item = TYPES[type(value[0])] if isinstance(value, list) else None
            keys[full] = gguf.gguf_writer.GGUFValue(value, TYPES[type(value)], item)

    return change


def keys(**values: Any) -> Change:
    """Several keys of the architecture at once, `__` standing for a dot."""
    changes = [key("." + name.replace("__", "."), value) for name, value in values.items()]

    def change_all(writer: gguf.GGUFWriter) -> None:
        for change in changes:
            change(writer)

    return change_all


def tensor(name: str, data: Any, kind: gguf.GGMLQuantizationType | None = None) -> Change:
    """Replace a tensor (or add one); ... removes it."""

    def change(writer: gguf.GGUFWriter) -> None:
        writer.tensors[0].pop(name, None)
        if data is not ...:
            writer.add_tensor(name, data, raw_dtype=kind)

    return change


def transpose(name: str) -> Change:
    def change(writer: gguf.GGUFWriter) -> None:
        data: Any = writer.tensors[0][name].tensor
        tensor(name, data.T.copy())(writer)

    return change


ZEROS = np.zeros((96, 96), dtype=np.float32)
I8 = gguf.GGMLQuantizationType.I8
Q8_0 = gguf.GGMLQuantizationType.Q8_0

GGUF_CASES: dict[str, tuple[str, Change, str]] = {
    **{f"{n} blocks": ("llama", key(".block_count", n), HPARAM) for n in (0, 513, 2**31)},
    "a block too many": ("llama", key(".block_count", 4), "MISSING_TENSOR"),
    "a block too few": ("llama", key(".block_count", 2), TENSOR),
    "no block count": ("llama", key(".block_count", ...), HPARAM),
    "block count is text": ("llama", key(".block_count", "3"), HPARAM),
    "block count is true": ("llama", key(".block_count", True), HPARAM),
    "block count is 2.5": ("llama", key(".block_count", 2.5), HPARAM),
    **{f"{n} heads": ("llama", key(".attention.head_count", n), HPARAM) for n in (0, 3, 2**31)},
    **{f"{n} kv heads": ("llama", key(".attention.head_count_kv", n), HPARAM) for n in (0, 4, 12, 2**31)},
    "kv heads of another count": ("llama", key(".attention.head_count_kv", 3), TENSOR),
    "heads differ by layer": ("llama", key(".attention.head_count_kv", [2, 2, 6]), "UNSUPPORTED"),
    **{f"hidden size {n}": ("llama", key(".embedding_length", n), HPARAM) for n in (0, 2**31)},
    "hidden size 63": ("llama", key(".embedding_length", 63), TENSOR),
    "hidden size heads do not divide": (
        "qwen2",
        keys(embedding_length=95, attention__key_length=..., attention__value_length=...),
        HPARAM,
    ),
    **{f"ffn size {n}": ("llama", key(".feed_forward_length", n), HPARAM) for n in (0, 2**31)},
    "ffn size of another model": ("llama", key(".feed_forward_length", 128), TENSOR),
    **{f"context {n}": ("llama", key(".context_length", n), HPARAM) for n in (0, 2**32 - 1)},
    **{f"head size {n}": ("llama", key(".attention.key_length", n), HPARAM) for n in (0, 2**31)},
    "odd head size": ("llama", keys(attention__key_length=31, attention__value_length=31), HPARAM),
    "values unlike keys": ("llama", key(".attention.value_length", 16), "UNSUPPORTED"),
    **{f"rope dims {n}": ("llama", key(".rope.dimension_count", n), HPARAM) for n in (0, 15, 64)},
    **{f"rope base {x}": ("llama", key(".rope.freq_base", x), HPARAM) for x in (0.0, math.nan, -1.0, math.inf, 1.0)},
    **{f"eps {x}": ("llama", key(".attention.layer_norm_rms_epsilon", x), HPARAM) for x in (math.nan, -1.0, 0.0)},
    "no eps": ("llama", key(".attention.layer_norm_rms_epsilon", ...), HPARAM),
    "a million experts": ("llama", key(".expert_count", 2**20), HPARAM),
    "eight experts": ("llama", key(".expert_count", 8), "UNSUPPORTED"),
    "more experts used than there are": ("llama", keys(expert_count=4, expert_used_count=9), "UNSUPPORTED"),
    "unknown rope scaling": ("llama", key(".rope.scaling.type", "wobble"), HPARAM),
    "rope scaling type is a number": ("llama", key(".rope.scaling.type", 3), HPARAM),
    **{
        f"linear rope by {x}": ("llama", keys(rope__scaling__type="linear", rope__scaling__factor=x), HPARAM)
        for x in (math.nan, -2.0, math.inf)
    },
    "yarn from no context": ("qwen3-yarn", key(".rope.scaling.original_context_length", 0), HPARAM),
    "yarn factor is text": ("qwen3-yarn", key(".rope.scaling.factor", "4"), HPARAM),
    "yarn magnitude NaN": ("qwen3-yarn", key(".rope.scaling.attn_factor", math.nan), HPARAM),
    "longrope without factors": ("llama", key(".rope.scaling.type", "longrope"), HPARAM),
    "longrope without short factors": ("phi3-longrope", tensor("rope_factors_short.weight", ...), TENSOR),
    "window -1": ("gemma2", key(".attention.sliding_window", -1), HPARAM),
    "window pattern of another length": ("gemma3", key(".attention.sliding_window_pattern", [True, False]), HPARAM),
    "window pattern is text": ("gemma3", key(".attention.sliding_window_pattern", "alternate"), HPARAM),
    "softcap NaN": ("gemma2", key(".attn_logit_softcapping", math.nan), HPARAM),
    "logits divided by 0": ("granite", key(".logit_scale", 0.0), HPARAM),
    "unknown architecture": ("llama", key("general.architecture", "quokka"), "UNSUPPORTED"),
    "architecture is a number": ("llama", key("general.architecture", 7), "UNSUPPORTED"),
    "no architecture": ("llama", key("general.architecture", ...), "UNSUPPORTED"),
    "no q": ("llama", tensor("blk.1.attn_q.weight", ...), "MISSING_TENSOR"),
    "no embedding": ("llama", tensor("token_embd.weight", ...), "MISSING_TENSOR"),
    "no output norm": ("llama", tensor("output_norm.weight", ...), "MISSING_TENSOR"),
    "half the fused rows": ("phi3", tensor("blk.0.ffn_up.weight", np.zeros((160, 96), np.float32)), TENSOR),
    "transposed": ("llama", transpose("blk.0.ffn_down.weight"), TENSOR),
    "an extra tensor": ("llama", tensor("blk.0.attn_sinks.weight", np.zeros(6, np.float32)), TENSOR),
    "a bias of the wrong size": ("qwen2", tensor("blk.0.attn_q.bias", np.zeros(5, np.float32)), TENSOR),
    "a matrix with three dims": ("llama", tensor("blk.0.ffn_gate.weight", np.zeros((1, 160, 96), np.float32)), TENSOR),
    "a norm that is a matrix": ("llama", tensor("blk.0.attn_norm.weight", ZEROS), TENSOR),
    "an embedding that is a vector": ("llama", tensor("token_embd.weight", np.zeros(96, np.float32)), TENSOR),
    "an output of another vocabulary": ("llama", tensor("output.weight", np.zeros((299, 96), np.float32)), TENSOR),
    "an i8 weight": ("llama", tensor("blk.0.ffn_gate.weight", np.zeros((160, 96), np.int8), I8), TENSOR),
    "a quantised norm": ("llama", tensor("blk.0.ffn_norm.weight", np.zeros(102, np.uint8), Q8_0), TENSOR),
    "rope factors that are zero": ("llama-llama3-rope", tensor("rope_freqs.weight", np.zeros(12, np.float32)), TENSOR),
    "rope factors of another size": ("llama-llama3-rope", tensor("rope_freqs.weight", np.ones(16, np.float32)), TENSOR),
    "rope factors NaN": (
        "phi3-longrope",
        tensor("rope_factors_long.weight", np.full(12, np.nan, np.float32)),
        TENSOR,
    ),
}


@pytest.mark.parametrize("case", GGUF_CASES)
def test_gguf(case: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    name, change, code = GGUF_CASES[case]
    writer = prepare(tiny_folder(name), tmp_path / "bad.gguf")
    change(writer)
    write(writer)
    refused(tmp_path / "bad.gguf", code)


def refused(path: Path, code: str) -> None:
    """`path` is a ModelFileError `code` within the limits, and says so in one plain line."""
    started = time.perf_counter()
    with peak_growth() as growth, pytest.raises(ModelFileError) as caught:
        check(path)
    assert caught.value.code == code, caught.value
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 400 + len(str(path))
    assert time.perf_counter() - started < MAX_SECONDS
    assert growth.bytes < MAX_BYTES


def rope(**values: Any) -> dict[str, Any]:
    return {"rope_scaling": values}


CONFIG = "BAD_CONFIG"
LONG = {"type": "longrope", "short_factor": [1.0] * 12, "long_factor": [2.0] * 12}
CONFIG_CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "eps NaN": ("llama", {"rms_norm_eps": math.nan}, CONFIG),
    "eps infinite": ("llama", {"rms_norm_eps": math.inf}, CONFIG),
    "layers as text": ("llama", {"num_hidden_layers": "3"}, CONFIG),
    "layers null": ("llama", {"num_hidden_layers": None}, CONFIG),
    "layers true": ("llama", {"num_hidden_layers": True}, CONFIG),
    "layers in a dictionary": ("llama", {"num_hidden_layers": {"n": 3}}, CONFIG),
    "layers negative": ("llama", {"num_hidden_layers": -3}, CONFIG),
    "layers 10^400": ("llama", {"num_hidden_layers": 10**400}, CONFIG),
    "a billion layers": ("llama", {"num_hidden_layers": 10**9}, CONFIG),
    "hidden size negative": ("llama", {"hidden_size": -96}, CONFIG),
    "heads 0": ("llama", {"num_attention_heads": 0}, CONFIG),
    "heads that kv heads do not divide": ("llama", {"num_key_value_heads": 4}, CONFIG),
    "head size negative": ("llama", {"head_dim": -32}, CONFIG),
    "no vocabulary size": ("llama", {"vocab_size": ...}, CONFIG),
    "vocabulary of another model": ("llama", {"vocab_size": 301}, TENSOR),
    "context 0": ("llama", {"max_position_embeddings": 0}, CONFIG),
    "theta 0": ("llama", {"rope_theta": 0}, CONFIG),
    "theta as text": ("llama", {"rope_theta": "10000"}, CONFIG),
    "theta negative, newer spelling": ("llama", {"rope_parameters": {"rope_theta": -1.0}}, CONFIG),
    "window negative": ("mistral", {"sliding_window": -16}, CONFIG),
    "window as text": ("mistral", {"sliding_window": "16"}, CONFIG),
    "layer types of another length": ("gemma2", {"layer_types": ["sliding_attention"] * 3}, CONFIG),
    "layer types unheard of": ("gemma2", {"layer_types": ["chunked_attention"] * 4}, "UNSUPPORTED"),
    "layer types is text": ("gemma2", {"layer_types": "sliding_attention"}, CONFIG),
    "flags of rope of another length": ("smollm3", {"no_rope_layers": [1, 0]}, CONFIG),
    "rope interval 0": ("smollm3", {"no_rope_layers": ..., "no_rope_layer_interval": 0}, CONFIG),
    "unknown activation": ("llama", {"hidden_act": "quick_snail"}, "UNSUPPORTED"),
    "activation is a list": ("llama", {"hidden_act": ["silu"]}, "UNSUPPORTED"),
    "unknown architecture": ("llama", {"architectures": ["QuokkaForCausalLM"]}, "UNSUPPORTED"),
    "unknown architecture with code": (
        "llama",
        {"architectures": ["QuokkaForCausalLM"], "auto_map": {"AutoModelForCausalLM": "evil.Quokka"}},
        "UNSUPPORTED",
    ),
    "architectures is a number": ("llama", {"architectures": 7}, "UNSUPPORTED"),
    "architectures is empty": ("llama", {"architectures": []}, "UNSUPPORTED"),
    "no architectures": ("llama", {"architectures": ...}, "UNSUPPORTED"),
    "unknown rope scaling": ("llama", rope(rope_type="wobble", factor=2.0), CONFIG),
    "rope scaling without a type": ("llama", rope(factor=2.0), CONFIG),
    "rope scaling is a list": ("llama", {"rope_scaling": [2.0]}, CONFIG),
    "rope scaling is text": ("llama", {"rope_scaling": "linear"}, CONFIG),
    "rope type is a list": ("llama", rope(rope_type=["linear"], factor=2.0), CONFIG),
    "linear rope without a factor": ("llama", rope(rope_type="linear"), CONFIG),
    "linear rope, factor as text": ("llama", rope(rope_type="linear", factor="2"), CONFIG),
    "linear rope, factor 0": ("llama", rope(rope_type="linear", factor=0), CONFIG),
    "yarn, attention factor as text": ("llama", rope(rope_type="yarn", factor=4.0, attention_factor="1"), CONFIG),
    "yarn, beta 0": ("llama", rope(rope_type="yarn", factor=4.0, beta_slow=0), CONFIG),
    "yarn, mscale as a list": ("llama", rope(rope_type="yarn", factor=4.0, mscale=[1], mscale_all_dim=1), CONFIG),
    "llama3, low above high": (
        "llama",
        rope(rope_type="llama3", factor=8.0, low_freq_factor=4.0, high_freq_factor=1.0),
        CONFIG,
    ),
    "longrope, too few factors": ("phi3-longrope", rope(**LONG | {"long_factor": [1.0] * 11}), CONFIG),
    "longrope, a factor of 0": ("phi3-longrope", rope(**LONG | {"short_factor": [0.0] * 12}), CONFIG),
    "longrope, factors as text": ("phi3-longrope", rope(**LONG | {"short_factor": ["1"] * 12}), CONFIG),
    "longrope, a huge factor": ("phi3-longrope", rope(**LONG | {"short_factor": [10**400] * 12}), CONFIG),
    "longrope from no context": ("phi3-longrope", {"original_max_position_embeddings": 0}, CONFIG),
    "half a dim rotates": ("phi3-longrope", {"partial_rotary_factor": 0.016}, CONFIG),
    "more dims rotate than there are": ("phi3-longrope", {"partial_rotary_factor": 2.0}, CONFIG),
    "rotary factor as text, newer spelling": (
        "phi3",
        {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": "x"}},
        CONFIG,
    ),
    "weights quantised by another tool": ("llama", {"quantization_config": {"quant_method": "gptq"}}, "UNSUPPORTED"),
    "text_config is a list": ("gemma3", {"text_config": [1]}, CONFIG),
}


@pytest.mark.parametrize("case", CONFIG_CASES)
def test_config_json(case: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    name, changes, code = CONFIG_CASES[case]
    values = {**json.loads((tiny_folder(name) / "config.json").read_text()), **changes}
    text = json.dumps({key: value for key, value in values.items() if value is not ...})
    refused(with_config(tiny_folder(name), tmp_path, text), code)


NOT_CONFIGS = ("", "{", "[]", "null", "7", '"llama"', "\x00" * 64, '{"a": 1e999}', '{"a": NaN}', "{'a': 1}")
HUGE_CONFIGS = {
    "lists 5 million deep": ('{"a": ' + "[" * 5_000_000 + "]" * 5_000_000 + "}", "TOO_BIG"),
    "objects 100,000 deep": ('{"a": ' + '{"a":' * 100_000 + "1" + "}" * 100_001, CONFIG),
    "a number of 100,000 digits": ('{"num_hidden_layers": ' + "9" * 100_000 + "}", CONFIG),
}


@pytest.mark.parametrize("text", NOT_CONFIGS)
def test_config_json_that_is_not_a_config(text: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    refused(with_config(tiny_folder("llama"), tmp_path, text), CONFIG)


@pytest.mark.parametrize("case", HUGE_CONFIGS)
def test_config_json_that_is_huge(case: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    text, code = HUGE_CONFIGS[case]
    refused(with_config(tiny_folder("llama"), tmp_path, text), code)


def test_remote_code_of_a_known_architecture_is_left_alone(tiny_folder: TinyFile, tmp_path: Path) -> None:
    """Real Phi-3 folders name Python files of their own; nothing of them is ever run."""
    values = json.loads((tiny_folder("phi3") / "config.json").read_text())
    values["auto_map"] = {"AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"}
    folder = with_config(tiny_folder("phi3"), tmp_path, json.dumps(values))
    (folder / "modeling_phi3.py").write_text("raise SystemExit('this must never run')")
    check(folder)


def with_config(folder: Path, target: Path, text: str) -> Path:
    """A copy of a model folder with another config.json."""
    for file in folder.iterdir():
        if file.name != "config.json":
            shutil.copy(file, target)
    (target / "config.json").write_text(text)
    return target


def test_the_originals_pass(tiny_folder: TinyFile, tiny_gguf: TinyFile) -> None:
    names = {name for name, *_ in (*GGUF_CASES.values(), *CONFIG_CASES.values())}
    for name in sorted(names):
        check(tiny_folder(name))
        check(tiny_gguf(name))

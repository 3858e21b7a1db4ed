"""GGUF files that are sound as files and impossible as models: a ModelFileError each, quickly and in little memory."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from localrun_testing.malformed import Change, key, keys, refused, tensor, transpose, write_changed

from localrun.base.errors import ModelFileError
from localrun.formats.gguf import open_gguf
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.load import load_model
from localrun.ops.layouts import FILE

TinyFile = Callable[..., Path]

HPARAM, TENSOR = "BAD_HPARAM", "BAD_TENSOR"


def check(path: Path) -> None:
    """Everything that is looked at before a weight is read."""
    source = open_gguf(path)
    read_weight_refs(source, read_config(source))


ZEROS = np.zeros((96, 96), dtype=np.float32)
I8 = gguf.GGMLQuantizationType.I8
Q8_0 = gguf.GGMLQuantizationType.Q8_0

CASES: dict[str, tuple[str, Change, str]] = {
    **{f"{n} blocks": ("llama", key(".block_count", n), HPARAM) for n in (0, 513, 2**31)},
    "a block too many": ("llama", key(".block_count", 4), "MISSING_TENSOR"),
    "a block too few": ("llama", key(".block_count", 2), "UNSUPPORTED"),
    "no block count": ("llama", key(".block_count", ...), HPARAM),
    "block count is text": ("llama", key(".block_count", "3"), HPARAM),
    "block count is true": ("llama", key(".block_count", True), HPARAM),
    "block count is 2.5": ("llama", key(".block_count", 2.5), HPARAM),
    **{f"{n} heads": ("llama", key(".attention.head_count", n), HPARAM) for n in (0, 3, 2**31)},
    **{f"{n} kv heads": ("llama", key(".attention.head_count_kv", n), HPARAM) for n in (0, 4, 12, 2**31)},
    "kv heads of another count": ("llama", key(".attention.head_count_kv", 3), TENSOR),
    "kv heads by layer, and other tensors": ("llama", key(".attention.head_count_kv", [2, 2, 6]), TENSOR),
    "kv heads of too few layers": ("llama", key(".attention.head_count_kv", [2, 6]), HPARAM),
    "a layer without kv heads": ("llama", key(".attention.head_count_kv", [2, 0, 2]), HPARAM),
    "no list of heads": ("llama", key(".attention.head_count_kv", ["2", "6", "2"]), HPARAM),
    "head sizes by layer": (
        "llama",
        keys(attention__head_count=[6, 6, 2], attention__key_length=..., attention__value_length=...),
        "UNSUPPORTED",
    ),
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
    **{
        f"yarn with {name} {x}": ("qwen3-yarn", key(f".rope.scaling.{name}", x), code)
        for name in ("yarn_ext_factor", "yarn_attn_factor")
        for x, code in ((0.5, "UNSUPPORTED"), (math.nan, HPARAM), ("1", "UNSUPPORTED"))
    },
    "a part of yarn in another rope": ("llama", key(".rope.scaling.yarn_ext_factor", 1.0), "UNSUPPORTED"),
    "fast beta of yarn is text": ("qwen3-yarn", key(".rope.scaling.yarn_beta_fast", "32"), HPARAM),
    "queries scaled by nothing known": ("qwen3", key(".attention.temperature_scale", 0.1), HPARAM),
    **{f"eps {x}": ("llama", key(".attention.layer_norm_rms_epsilon", x), HPARAM) for x in (math.nan, -1.0, 0.0)},
    "no eps": ("llama", key(".attention.layer_norm_rms_epsilon", ...), HPARAM),
    "a million experts": ("llama", key(".expert_count", 2**20), HPARAM),
    "eight experts": ("gemma2", key(".expert_count", 8), "UNSUPPORTED"),
    "experts that nobody uses": ("llama", key(".expert_count", 8), HPARAM),
    "a router of another count": ("mixtral", key(".expert_count", 5), TENSOR),
    "more experts used than there are": ("llama", keys(expert_count=4, expert_used_count=9), HPARAM),
    "unknown rope scaling": ("llama", key(".rope.scaling.type", "wobble"), "UNSUPPORTED"),
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
    "no number of an activation": ("apertus", key("xielu.alpha_p", ...), HPARAM),
    "numbers of an activation of too few layers": ("apertus", key("xielu.alpha_n", [0.1, 0.2]), HPARAM),
    "a number of an activation is text": ("apertus", key("xielu.beta", "0.5"), HPARAM),
    **{f"an activation of {x}": ("apertus", key("xielu.eps", [x] * 3), HPARAM) for x in (math.nan, math.inf, 1e9)},
    "unknown architecture": ("llama", key("general.architecture", "quokka"), "UNSUPPORTED"),
    "architecture is a number": ("llama", key("general.architecture", 7), "BAD_TYPE"),
    "no architecture": ("llama", key("general.architecture", ...), "MISSING_KEY"),
    "no q": ("llama", tensor("blk.1.attn_q.weight", ...), "MISSING_TENSOR"),
    "no embedding": ("llama", tensor("token_embd.weight", ...), "MISSING_TENSOR"),
    "no output norm": ("llama", tensor("output_norm.weight", ...), "MISSING_TENSOR"),
    "half the fused rows": ("phi3", tensor("blk.0.ffn_up.weight", np.zeros((160, 96), np.float32)), TENSOR),
    "transposed": ("llama", transpose("blk.0.ffn_down.weight"), TENSOR),
    "an extra tensor": ("llama", tensor("blk.0.attn_sinks.weight", np.zeros(6, np.float32)), "UNSUPPORTED"),
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


@pytest.mark.parametrize("case", CASES)
def test_a_malformed_gguf_model_is_refused(case: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    name, change, code = CASES[case]
    refused(write_changed(tiny_folder(name), tmp_path / "bad.gguf", change), code, check)


def spoil(name: str, value: float, qtype: str = "F32") -> Change:
    """One number of a tensor becomes `value`; of a quantised one a scale."""

    def change(writer: gguf.GGUFWriter) -> None:
        before: Any = writer.tensors[0][name].tensor
        shape = before.shape
        if qtype == "F32":
            data = np.ones(shape, np.float32)
            data.reshape(-1)[data.size // 2] = value
            tensor(name, data)(writer)
            return
        kind = gguf.GGMLQuantizationType[qtype]
        raw = gguf.quants.quantize(np.ones(shape, np.float32), kind)
        raw[raw.shape[0] // 2, :2] = np.array([value], np.float16).view(np.uint8)
        tensor(name, raw, kind)(writer)

    return change


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("model", "name", "qtype"),
    [
        ("llama", "token_embd.weight", "F32"),
        ("llama", "blk.1.attn_q.weight", "F32"),
        ("llama", "blk.1.ffn_down.weight", "Q8_0"),
        ("llama", "blk.1.attn_k.weight", "Q4_0"),
        ("llama", "blk.0.ffn_norm.weight", "F32"),
        ("llama", "output_norm.weight", "F32"),
        ("qwen2", "blk.1.attn_k.bias", "F32"),
    ],
)
def test_weights_that_are_no_numbers(
    tiny_folder: TinyFile, tmp_path: Path, model: str, name: str, qtype: str, value: float
) -> None:
    source = open_gguf(write_changed(tiny_folder(model), tmp_path / "bad.gguf", spoil(name, value, qtype)))
    with pytest.raises(ModelFileError, match=f"of the tensor '{name}' is not finite") as caught:
        load_model(source, FILE)
    assert caught.value.code == "NOT_FINITE"
    assert caught.value.offset is not None
    info = source.tensors[name]
    assert info.offset < caught.value.offset < info.offset + info.nbytes


@pytest.mark.parametrize("name", ["yarn_beta_fast", "beta_fast", "beta_slow", "yarn_log_multiplier", "factor"])
def test_a_number_of_the_rope_is_named_as_the_file_spells_it(name: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    spelled = f".rope.scaling.{name}"
    source = open_gguf(write_changed(tiny_folder("qwen3-yarn"), tmp_path / "bad.gguf", key(spelled, "x")))
    with pytest.raises(ModelFileError, match=rf"qwen3{re.escape(spelled)} between"):
        read_config(source)


AS_MUCH = (("qwen3-yarn", 1.0), ("qwen3-yarn", -1.0), ("llama", 0.0), ("llama", -1.0))


@pytest.mark.parametrize(("name", "factor"), AS_MUCH)
def test_as_much_of_yarn_as_the_type_has_is_no_setting(
    name: str, factor: float, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    check(write_changed(tiny_folder(name), tmp_path / "good.gguf", key(".rope.scaling.yarn_ext_factor", factor)))


def test_the_originals_pass(tiny_gguf: TinyFile) -> None:
    for name in sorted({name for name, *_ in CASES.values()}):
        check(tiny_gguf(name))

"""Every key that the GGUF specification has for models: honoured, refused, or in a table that says why it is ignored.

Keys are changed one by one in a tiny file of each architecture. A file that still loads as before has had one ignored.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import pytest
from localrun_testing.gguf_convert import prepare, write

from localrun.base.errors import ModelFileError
from localrun.formats.gguf import GgufFile, open_gguf
from localrun.formats.metadata import Metadata
from localrun.model.config import ModelConfig
from localrun.model.headers import read_config, read_weight_refs

TinyFile = Callable[..., Path]

KINDS = (
    "llama", "mixtral", "ministral-3", "qwen2", "qwen2-moe", "qwen3-yarn", "gemma", "gemma2", "gemma3", "gemma4-e2b",
    "gemma4-moe", "phi3", "phi3-longrope", "olmo3", "granite", "granite-moe-shared", "granite-hybrid-moe",
    "nemotron-h-moe", "smollm3", "qwen3-moe", "qwen3-vl-moe", "qwen3.5", "qwen3.5-moe", "qwen3-next", "lfm2",
    "lfm2-moe", "gpt-oss", "apertus", "muse-glimmer", "deepseek-v2-lite", "deepseek-v3",
)  # fmt: skip
NO_PLACE = "the size of a part whose tensors would have no place"
NO_EXPERTS = "of experts, and there are none: the tensors of some would have no place"
NO_WINDOWS = "of windowed layers, and there are none; llama.cpp does not ask such an architecture either"
OTHER_ROPE = "of another way to stretch the rope than this file's, which llama.cpp does not ask either"
TENSORS_TELL = "tensors tell, and what they tell counts"
NO_LOGITS = "decides no logits of a text"
IGNORED: dict[str, str] = {
    **dict.fromkeys(
        ("altup.active_idx", "attention.decay_lora_rank", "attention.gate_lora_rank", "attention.iclr_lora_rank",
         "attention.indexer.key_length", "attention.indexer.top_k", "attention.value_residual_mix_lora_rank",
         "convnext.block_count", "convnext.embedding_length", "decoder_block_count", "expert_chunk_feed_forward_length",
         "features_length", "moe_latent_size", "posnet.block_count", "posnet.embedding_length", "shortconv.l_cache",
         "ssm.conv_kernel", "ssm.group_count", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank",
         "time_decay_extra_dim", "time_mix_extra_dim", "wkv.head_size", "{dense}_feat_in", "{dense}_feat_out",
         "embedding_length_per_layer_input"),
        NO_PLACE,
    ),
    **dict.fromkeys(
        ("expert_gating_func", "expert_group_count", "expert_group_used_count", "expert_shared_count",
         "expert_shared_feed_forward_length", "expert_used_count", "expert_weights_norm", "expert_weights_scale",
         "experts_per_group", "leading_dense_block_count"),
        NO_EXPERTS,
    ),
    **dict.fromkeys(
        ("attention.key_length_swa", "attention.sliding_window", "attention.sliding_window_pattern",
         "attention.value_length_swa", "rope.dimension_count_swa", "rope.freq_base_swa"),
        NO_WINDOWS,
    ),
    **dict.fromkeys(
        ("rope.scaling.original_context_length", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",
         "rope.scaling.yarn_log_multiplier", "rope.scaling.type"),
        OTHER_ROPE,
    ),
    **dict.fromkeys(
        ("classifier.output_labels", "decoder_start_token_id", "embedding_length_out", "n_deepstack_layers",
         "pooling_type", "tensor_data_layout"),
        NO_LOGITS,
    ),
    "attention.group_norm_epsilon": NO_PLACE,
    "attention.group_norm_groups": NO_PLACE,
    "attention.layer_norm_epsilon": "of another norm: the RMS norm's own key is there, or this one is read",
    "attention.temperature_length": "of queries that grow with their position, which they do not",
    "feed_forward_length": TENSORS_TELL,
    "full_attention_interval": "of Gated DeltaNets, of which there are none: their tensors would have no place",
    "rope.dimension_sections": "of positions on three axes, which are equal for text",
    "rope.scaling.finetuned": "a note, but in Granite's files",
}  # fmt: skip
FLAGS = ("attention.causal", "expert_weights_norm", "rope.scaling.finetuned", "ssm.dt_b_c_rms", "swin_norm",
    "use_parallel_residual")  # fmt: skip


@dataclass(frozen=True)
class Changed:
    """A file with other key-values; its tensors stay."""

    source: GgufFile
    metadata: Metadata

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)


def keys_of(group: type) -> Iterator[str]:
    for value in vars(group).values():
        if inspect.isclass(value):
            yield from keys_of(value)
        elif isinstance(value, str) and value.startswith("{arch}."):
            yield value.removeprefix("{arch}.")


def changes(key: str, old: Any, n_layers: int) -> list[Any]:
    """Other values that the key could have."""
    if isinstance(old, bool):
        return [not old]
    if isinstance(old, (int, float)):
        return [old * 2 or 3]
    if isinstance(old, list):
        return [[not x if isinstance(x, bool) else x + 1 for x in old]]
    if isinstance(old, str):
        return ["linear"]
    if key in FLAGS:
        return [key not in ("attention.causal", "rope.scaling.finetuned")]
    return [3, 0.37, [3] * n_layers]


def with_keys(source: GgufFile, values: Mapping[str, Any]) -> Any:
    return Changed(source, Metadata({**source.metadata, **values}, source.path))


def is_ignored(source: GgufFile, config: ModelConfig, name: str) -> bool:
    key = f"{source.metadata['general.architecture']}.{name}"
    for value in changes(name, source.metadata.get(key), config.n_layers):
        with suppress(ModelFileError):
            if read_config(with_keys(source, {key: value})) == config:
                return True
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_honoured_refused_or_ignored_for_a_reason(kind: str, tiny_gguf: TinyFile) -> None:
    source = open_gguf(tiny_gguf(kind))
    config = read_config(source)
    told = {*keys_of(gguf.Keys)} - IGNORED.keys()
    assert not [key for key in sorted(told) if is_ignored(source, config, key)]


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("llama", "attention.causal", False),
        ("llama", "attention.clamp_kqv", 8.0),
        ("llama", "logit_scale", 0.5),
        ("gemma3", "embedding_scale", 12.0),
        ("llama", "vocab_size", 32_768),
        ("llama", "rope.scaling.attn_factor", 1.2),
        ("llama-llama3-rope", "rope.scaling.factor", 4.0),
        ("gemma2", "rope.freq_base_swa", 500.0),
        ("gpt-oss", "rope.freq_base_swa", 500.0),
        ("gpt-oss", "swiglu_clamp_exp", [7.0] * 3),
        ("gemma4", "attention.value_length_swa", 48),
        ("gemma4", "rope.dimension_count", 7),
        ("granite-hybrid", "vocab_size", 1),
    ],
)
def test_keys_that_ask_for_other_numbers_are_refused(kind: str, key: str, value: Any, tiny_gguf: TinyFile) -> None:
    source = open_gguf(tiny_gguf(kind))
    with pytest.raises(ModelFileError, match=key):
        read_config(with_keys(source, {f"{source.metadata['general.architecture']}.{key}": value}))


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("llama", "attention.causal", True),
        ("llama", "attention.clamp_kqv", 0.0),
        ("llama", "logit_scale", 1.0),
        ("llama", "rope.scaling.attn_factor", 1.0),
        ("gemma3", "embedding_scale", 96**0.5),
        ("gpt-oss", "swiglu_clamp_exp", [0.0] * 3),
        ("qwen3", "pooling_type", 3),
        ("qwen3", "a.key.that.nobody.knows", 3),
    ],
)
def test_keys_that_ask_for_nothing_else_are_not(kind: str, key: str, value: Any, tiny_gguf: TinyFile) -> None:
    source = open_gguf(tiny_gguf(kind))
    changed = with_keys(source, {f"{source.metadata['general.architecture']}.{key}": value})
    assert read_config(changed) == read_config(source)


def test_a_granite_without_rope(tiny_gguf: TinyFile) -> None:
    source = open_gguf(tiny_gguf("granite"))
    plain = read_config(with_keys(source, {"granite.rope.scaling.finetuned": False}))
    assert {spec.rope for spec in read_config(source).layers} == {0}
    assert {spec.rope for spec in plain.layers} == {None}


@pytest.mark.parametrize(("kind", "bias"), [("gpt-oss", "blk.1.attn_k.bias"), ("llama-biases", "blk.0.ffn_up.bias")])
def test_a_bias_that_one_layer_lacks_is_missing(kind: str, bias: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    writer = prepare(tiny_folder(kind), tmp_path / "model.gguf")
    del writer.tensors[0][bias]
    write(writer)
    source = open_gguf(tmp_path / "model.gguf")
    with pytest.raises(ModelFileError, match=bias.replace("bias", "weight")) as caught:
        read_weight_refs(source, read_config(source))
    assert caught.value.code == "MISSING_TENSOR"


def test_windows_of_olmo_may_turn_by_another_base(tiny_gguf: TinyFile) -> None:
    source = open_gguf(tiny_gguf("olmo3"))
    changed = read_config(with_keys(source, {"olmo2.rope.freq_base_swa": 500.0}))
    assert [rope.theta for rope in changed.ropes] == [10000.0, 500.0]

"""Models as Ollama's own converter spelled them: keys, tensors and architectures of other names, eyes in the same file.

What differs is what Ollama lists in its README of `llama/compat`, with the code beside it (2026-08). Every file has a
twin as llama.cpp's converter writes it, which must give the same logits, bit for bit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from localrun_testing.gguf_convert import prepare, write
from localrun_testing.oracle import token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE

from localrun.model.archs import ARCHS
from localrun.text.gguf_keys import TokenizerKeys

TinyFile = Callable[..., Path]

PARTS = (  # of eyes, ears, and what drafts tokens
    "v.blk.0.attn_q.weight", "v.patch_embd.weight", "mm.0.weight", "a.blk.0.conv_dw.weight", "s.blk.0.attn_qkv.weight",
    "mtp.layers.0.mixer.experts.0.up_proj.weight", "model.vision_tower.std_bias",
)  # fmt: skip
PART_KEYS = ("vision.block_count", "audio.block_count", "image_token_id")


@dataclass(frozen=True)
class Spelling:
    """What of a file is called otherwise; a key that becomes "" is left out."""

    arch: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)  # after the architecture
    tensors: Mapping[str, str] = field(default_factory=dict)  # parts of names
    values: Mapping[str, Any] = field(default_factory=dict)  # of keys after the architecture


SSM_DT = {".ssm_dt.bias": ".ssm_dt"}
SPELLINGS: dict[str, Spelling] = {
    "llama": Spelling(values={"attention.head_dim": 32}),
    "ministral-3": Spelling(
        keys={
            "rope.scaling.yarn_beta_fast": "rope.scaling.beta_fast",
            "rope.scaling.yarn_beta_slow": "rope.scaling.beta_slow",
            "rope.scaling.yarn_log_multiplier": "rope.scaling.mscale_all_dim",
            "attention.temperature_scale": "rope.scaling_beta",
        }
    ),
    "qwen2": Spelling(),
    "qwen2-moe": Spelling(),
    "qwen2.5-vl": Spelling(arch="qwen25vl", keys={"rope.dimension_sections": "rope.mrope_section"}),
    "qwen3": Spelling(),
    "qwen3-vl": Spelling(keys={"rope.dimension_sections": ""}),
    "qwen3-moe": Spelling(values={"norm_top_k_prob": True}),
    "qwen3-vl-moe": Spelling(keys={"rope.dimension_sections": ""}),
    "gemma": Spelling(),
    "gemma2": Spelling(),
    "gemma3": Spelling(keys={"rope.freq_base": "rope.global.freq_base", "rope.freq_base_swa": "rope.local.freq_base"}),
    "gemma4": Spelling(),
    "gemma4-e2b": Spelling(),
    "gemma4-moe": Spelling(tensors={".ffn_down_exps.scale": ".ffn_gate_inp.per_expert_scale"}),
    "phi3": Spelling(),
    "olmo2": Spelling(),
    "olmo3": Spelling(arch="olmo3"),
    "granite": Spelling(),
    "granite-moe-shared": Spelling(),
    "granite-hybrid": Spelling(),
    "nemotron-h": Spelling(arch="nemotron_h_omni"),
    "nemotron-h-moe": Spelling(arch="nemotron_h_omni"),
    "smollm3": Spelling(),
    "apertus": Spelling(),
    "muse-glimmer": Spelling(),
    "glm-4.7-flash": Spelling(),
    "qwen3.5": Spelling(
        tensors=SSM_DT, values={"attention.head_count_kv": [0, 0, 0, 2, 0], "ssm.v_head_reordered": True}
    ),
    "qwen3.5-moe": Spelling(tensors=SSM_DT, values={"attention.head_count_kv": [0, 0, 0, 2]}),
    "qwen3-next": Spelling(tensors=SSM_DT, values={"attention.head_count_kv": [0, 0, 0, 2]}),
    "mixtral": Spelling(),
    "lfm2": Spelling(tensors={"token_embd_norm.weight": "output_norm.weight"}, values={"feed_forward_length": 12_288}),
    "lfm2-moe": Spelling(),
    "gpt-oss": Spelling(
        arch="gptoss",
        keys={"expert_feed_forward_length": "", "rope.scaling.type": ""},
        tensors={
            ".attn_output.": ".attn_out.",
            ".attn_sinks.weight": ".attn_sinks",
            ".post_attention_norm.": ".ffn_norm.",
        },
    ),
}


def respell(writer: gguf.GGUFWriter, spelling: Spelling) -> None:
    """Change the keys and the names of tensors of a file that is not written yet."""
    keys, tensors = writer.kv_data[0], writer.tensors[0]
    old = keys["general.architecture"].value
    arch = spelling.arch or old
    keys["general.architecture"].value = arch
    for key in [key for key in keys if key.startswith(f"{old}.")]:
        name = key.removeprefix(f"{old}.")
        value, name = keys.pop(key), spelling.keys.get(name, name)
        if name:
            keys[f"{arch}.{name}"] = value
    for name, value in spelling.values.items():
        keys.pop(f"{arch}.{name}", None)
        add = writer.add_array if isinstance(value, list) else writer.add_bool if value is True else writer.add_uint32
        add(f"{arch}.{name}", value)
    for before, after in spelling.tensors.items():
        names = [name for name in tensors if before in name]
        assert names, before
        for name in names:
            tensors[name.replace(before, after)] = tensors.pop(name)
    for name in PARTS:
        writer.add_tensor(name, np.full((32, 32), np.nan, np.float32))  # whoever read it would say so
    for name in PART_KEYS:
        writer.add_uint32(f"{arch}.{name}", 1)


def test_every_architecture_with_a_name_in_ggufs_is_here() -> None:
    spelled = {SPELLINGS[kind].arch for kind in SPELLINGS}
    usual = {gguf for arch in ARCHS for gguf in arch.gguf} - spelled
    assert {"gptoss", "olmo3", "qwen25vl", "nemotron_h_omni"} <= spelled
    kinds = {"llama", "mistral3", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3vl", "gemma", "gemma2", "gemma3",
             "gemma4", "phi3", "olmo2", "granite", "granitemoe", "granitehybrid", "nemotron_h", "nemotron_h_moe",
             "smollm3", "qwen3moe", "qwen3vlmoe", "qwen35", "qwen35moe", "qwen3next", "lfm2", "lfm2moe",
             "gpt-oss", "apertus", "muse-glimmer", "deepseek2"}  # fmt: skip
    assert usual == kinds, "a new architecture wants a row of SPELLINGS"


@pytest.mark.parametrize("kind", SPELLINGS)
def test_other_spellings_give_the_same_logits(
    kind: str, tiny_folder: TinyFile, tiny_gguf: TinyFile, tmp_path: Path
) -> None:
    writer = prepare(tiny_folder(kind), tmp_path / "model.gguf")
    respell(writer, SPELLINGS[kind])
    write(writer)
    ids = token_ids(60, VOCAB_SIZE)
    found, expected = (Stepper(path).logits(ids) for path in (tmp_path / "model.gguf", tiny_gguf(kind)))
    assert torch.equal(found, expected)


def test_full_layers_of_a_gemma_3_that_sees_are_stretched(tiny_folder: TinyFile, tmp_path: Path) -> None:
    """By the factor of 8 that its config.json has and Ollama's converter left out."""
    paths = tmp_path / "ollama.gguf", tmp_path / "llama.cpp.gguf"
    for path in paths:
        writer = prepare(tiny_folder("gemma3"), path)
        keys = writer.kv_data[0]
        keys["gemma3.context_length"].value = 131_072
        if path == paths[0]:
            del keys["gemma3.rope.scaling.type"], keys["gemma3.rope.scaling.factor"]
            writer.add_uint32("gemma3.mm.tokens_per_image", 256)
        write(writer)
    found, expected = (Stepper(path).logits(token_ids(60, VOCAB_SIZE)) for path in paths)
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("said", "arch", "pre"),
    [
        ({}, "gptoss", "gpt-4o"),
        ({"tokenizer.ggml.pre": "default"}, "gptoss", "gpt-4o"),
        ({"tokenizer.ggml.pre": "qwen2"}, "gptoss", "qwen2"),
        ({}, "mistral3", "tekken"),
        ({"tokenizer.ggml.pre": "default"}, "lfm2", "lfm2"),
        ({"tokenizer.ggml.pre": "default"}, "qwen2", "default"),
        ({}, "qwen2", ""),
    ],
)
def test_a_pre_tokenizer_that_is_not_named_follows_the_architecture(said: dict[str, str], arch: str, pre: str) -> None:
    keys = TokenizerKeys.of({"general.architecture": arch, "tokenizer.ggml.model": "gpt2", **said}, "")
    assert keys.pre_name == pre


def test_the_tokenizer_of_gemma_4_is_told_by_its_merges() -> None:
    said = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "gemma4"}
    assert TokenizerKeys.of(said, "").model == "llama"
    assert TokenizerKeys.of({**said, "tokenizer.ggml.merges": []}, "").model == "gemma4"

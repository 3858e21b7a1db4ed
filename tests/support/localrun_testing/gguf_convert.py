"""Turn a safetensors folder into the GGUF that llama.cpp's own conversion would make: an oracle for our reader.

Nothing of localrun is used here. Names, keys and the Q/K row order are the GGUF convention, checked against llama.cpp
itself in `test_gguf_convert`.
"""

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import torch
from safetensors import safe_open

Array = npt.NDArray[Any]

ARCHS = {
    "llama": "llama",
    "mistral": "llama",
    "ministral3": "mistral3",
    "qwen2": "qwen2",
    "qwen2_vl_text": "qwen2vl",
    "qwen2_5_vl_text": "qwen2vl",
    "qwen3": "qwen3",
    "qwen3_vl_text": "qwen3vl",
    "qwen3_moe": "qwen3moe",
    "qwen3_vl_moe_text": "qwen3vlmoe",
    "qwen3_5_text": "qwen35",
    "qwen3_5_moe_text": "qwen35moe",
    "qwen3_next": "qwen3next",
    "qwen2_moe": "qwen2moe",
    "glm4_moe": "glm4moe",
    "mixtral": "llama",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3_text": "gemma3",
    "gemma4_text": "gemma4",
    "gemma4_unified_text": "gemma4",
    "phi3": "phi3",
    "olmo2": "olmo2",
    "olmo3": "olmo2",
    "granite": "granite",
    "smollm3": "smollm3",
    "apertus": "apertus",
    "muse_glimmer_text": "muse-glimmer",
    "granitemoe": "granitemoe",
    "granitemoeshared": "granitemoe",
    "granitemoehybrid": "granitehybrid",
    "nemotron_h": "nemotron_h",
    "lfm2": "lfm2",
    "lfm2_moe": "lfm2moe",
    "gpt_oss": "gpt-oss",
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "glm4_moe_lite"), "deepseek2"),
}
PAIRS_INTERLEAVED = {
    "llama",
    "mistral3",
    "granite",
    "granitemoe",
    "granitehybrid",
    "smollm3",
    "muse-glimmer",
}  # their Q and K rows are stored in the order 0, d/2, 1, d/2+1, …
DELTA_NETS = {"qwen35", "qwen35moe", "qwen3next"}
NORMS_AROUND_ZERO = {
    "gemma",
    "gemma2",
    "gemma3",
    "muse-glimmer",
    *DELTA_NETS,
}  # the checkpoint stores w - 1, the GGUF stores w
POST_NORMED = {
    "gemma2",
    "gemma3",
    "gemma4",
    "olmo2",
    "gpt-oss",
    "muse-glimmer",
    *DELTA_NETS,
}  # or what would be ffn_norm is called so

MODEL_TENSORS = {
    "model.embed_tokens": "token_embd",
    "model.embed_tokens_per_layer": "per_layer_token_embd",
    "model.per_layer_model_projection": "per_layer_model_proj",
    "model.per_layer_projection_norm": "per_layer_proj_norm",
    "model.norm": "output_norm",
    "lm_head": "output",
    "backbone.embeddings": "token_embd",
    "backbone.norm_f": "output_norm",
}
MODEL_TENSORS |= {"model.embedding_norm": "token_embd_norm"}
LAYER_TENSORS = {
    "input_layernorm": "attn_norm",
    "attention_layernorm": "attn_norm",
    "feedforward_layernorm": "ffn_norm",
    "post_attention_layernorm": "ffn_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.gate_proj": "attn_gate",
    "self_attn.q_a_proj": "attn_q_a",
    "self_attn.q_a_layernorm": "attn_q_a_norm",
    "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate_up_proj": "ffn_up",
    "mamba.in_proj": "ssm_in",
    "mamba.conv1d": "ssm_conv1d",
    "mamba.norm": "ssm_norm",
    "mamba.out_proj": "ssm_out",
    "norm": "attn_norm",  # the only one of a layer of one block
    "mixer.in_proj": "ssm_in",
    "mixer.conv1d": "ssm_conv1d",
    "mixer.norm": "ssm_norm",
    "mixer.out_proj": "ssm_out",
    **{f"mixer.{part}_proj": f"attn_{part}" for part in "qkv"},
    "mixer.o_proj": "attn_output",
    "mixer.gate": "ffn_gate_inp",
    **{f"mixer.{part}_proj": f"ffn_{part}" for part in ("up", "down")},
    **{f"mixer.shared_experts.{part}_proj": f"ffn_{part}_shexp" for part in ("up", "down")},
    "block_sparse_moe.router.layer": "ffn_gate_inp",
    "block_sparse_moe.output_linear": "ffn_down_exps",
    "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
    "post_feedforward_layernorm_1": "post_ffw_norm_1",
    "post_feedforward_layernorm_2": "post_ffw_norm_2",
    "router.proj": "ffn_gate_inp",
    "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_ba": "ssm_ba",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
    "operator_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
    "self_attn.out_proj": "attn_output",
    "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm",
    "conv.conv": "shortconv.conv",
    "conv.in_proj": "shortconv.in_proj",
    "conv.out_proj": "shortconv.out_proj",
    "feed_forward.w1": "ffn_gate",
    "feed_forward.w3": "ffn_up",
    "feed_forward.w2": "ffn_down",
    "feed_forward.gate": "ffn_gate_inp",
    "mtp.fc": "nextn.eh_proj",
    "mtp.pre_fc_norm_embedding": "nextn.enorm",
    "mtp.pre_fc_norm_hidden": "nextn.hnorm",
    "mtp.norm": "nextn.shared_head_norm",
    "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    **{
        f"mlp.{shared}.{part}_proj": f"ffn_{part}_shexp"
        for shared in ("shared_expert", "shared_experts")
        for part in ("gate", "up", "down")
    },
}
GEMMA4_BARE = {  # names without .weight
    ".layer_scalar": "layer_output_scale.weight",
    ".router.scale": "ffn_gate_inp.scale",
    ".router.per_expert_scale": "ffn_down_exps.scale",
    ".experts.gate_up_proj": "ffn_gate_up_exps.weight",
    ".experts.down_proj": "ffn_down_exps.weight",
}
EXPERT_TENSORS = {
    **dict.fromkeys(("gate_proj", "w1"), "ffn_gate_exps"),
    **dict.fromkeys(("up_proj", "w3"), "ffn_up_exps"),
    **dict.fromkeys(("down_proj", "w2"), "ffn_down_exps"),
}


def convert(folder: Path, target: Path, qtype: str = "F32") -> Path:
    """Write `folder` as a GGUF whose matrices are F32, F16 or a type `gguf.quants` can encode; norms stay F32.

    A matrix whose rows do not divide into blocks of `qtype` becomes F16, as llama.cpp does.
    """
    write(prepare(folder, target, qtype))
    return target


def prepare(folder: Path, target: Path, qtype: str = "F32") -> gguf.GGUFWriter:
    """Everything `convert` would write, still open to changes in the writer's `kv_data` and `tensors`."""
    import transformers  # takes a second, which those do without who only encode a matrix

    config = transformers.AutoConfig.from_pretrained(folder).get_text_config()
    config.allow_global_per_layer_attribute_access = True  # of Gemma 4: those of windowed layers
    arch = ARCHS[config.model_type]
    if config.model_type == "nemotron_h" and "moe" in config.layer_types:
        arch = "nemotron_h_moe"
    writer = gguf.GGUFWriter(target, arch)
    add_hyperparameters(writer, arch, config)
    add_vocabulary(writer, folder)
    if arch == "apertus":
        add_xielu(writer, folder, config.num_hidden_layers)
    for name, data, encoding in converted(checkpoint(folder), arch, config, qtype):
        writer.add_tensor(name, data, raw_dtype=encoding)
    if any(".nextn." in name for tensors in writer.tensors for name in tensors):
        writer.kv_data[0][f"{arch}.block_count"].value += 1
        writer.add_nextn_predict_layers(1)
    return writer


def converted(
    parts: Iterable[tuple[str, torch.Tensor]], arch: str, config: Any, qtype: str
) -> Iterator[tuple[str, Array, gguf.GGMLQuantizationType]]:
    """What becomes of the tensors of a checkpoint, which gives them by its own names."""
    for name, data in itertools.chain(stacked(tensors(parts, arch, config)), rope_tensors(config)):
        yield name, *encode(data, "F32" if is_always_f32(name) else qtype)


def is_always_f32(name: str) -> bool:
    """What llama.cpp's conversion never narrows, beside vectors."""
    kept = ("_norm.weight", "ssm_conv1d.weight", "shortconv.conv.weight")
    return "ffn_gate_inp" in name or not name.endswith(".weight") or name.endswith(kept)


def write(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_hyperparameters(writer: gguf.GGUFWriter, arch: str, config: Any) -> None:
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    rope = global_rope(config)
    nemotron = config.model_type == "nemotron_h"
    writer.add_name("tiny random model")  # a name with "phi3" in it makes llama.cpp expect phi3's own tokens
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    if hasattr(config, "intermediate_size") and arch != "gemma4":
        writer.add_feed_forward_length(ffn_size(config))
    writer.add_head_count(config.num_attention_heads)
    if nemotron:
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
    else:
        writer.add_layer_norm_rms_eps(getattr(config, "rms_norm_eps", None) or config.norm_eps)
    if arch == "deepseek2":
        add_latents(writer, config)
    elif arch != "gemma4":
        writer.add_head_count_kv(kv_heads(config))
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
        if rope:
            writer.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1.0)))
    if rope:
        writer.add_rope_freq_base(rope["rope_theta"])
    if "mrope_section" in rope:
        writer.add_rope_dimension_sections([*rope["mrope_section"], 0])
    add_rope_scaling(writer, config, rope)
    n_experts = getattr(config, "num_local_experts", 0) or getattr(config, "num_experts", 0)
    if n_experts and arch != "nemotron_h":
        add_experts(writer, config, n_experts)
    if arch in PAIRS_INTERLEAVED:
        writer.add_vocab_size(config.vocab_size)
    if config.model_type in {"gemma2", "gemma3_text", "phi3", "olmo3", "gpt_oss", "muse_glimmer_text"}:
        writer.add_sliding_window(config.sliding_window or 0)
    if config.model_type in {"olmo3", "muse_glimmer_text"}:
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])
    if arch in DELTA_NETS:
        add_delta_net(writer, config)
    if arch in {"lfm2", "lfm2moe"}:
        writer.add_shortconv_l_cache(config.conv_L_cache)
        writer.add_vocab_size(config.vocab_size)
    if arch == "gemma4":
        add_gemma4(writer, config)
    if arch == "gemma3":
        writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if arch == "muse-glimmer":
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
        writer.add_logit_scale(config.output_multiplier)
    if arch == "granitehybrid":
        add_mamba(writer, config)
    if nemotron:
        add_nemotron_mamba(writer, config)
    if arch in {"granite", "granitemoe", "granitehybrid"}:
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_logit_scale(config.logits_scaling)


def add_latents(writer: gguf.GGUFWriter, config: Any) -> None:
    """Sizes of latent attention: the other keys of heads are of what is cached, one key of latent and rope."""
    writer.add_head_count_kv(1)
    writer.add_q_lora_rank(config.q_lora_rank or 0)  # llama.cpp knows by 26 or 27 layers that there is none
    writer.add_kv_lora_rank(config.kv_lora_rank)
    writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
    writer.add_value_length(config.kv_lora_rank)
    writer.add_key_length_mla(config.qk_nope_head_dim + config.qk_rope_head_dim)
    writer.add_value_length_mla(config.v_head_dim)
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    writer.add_vocab_size(config.vocab_size)


def add_xielu(writer: gguf.GGUFWriter, folder: Path, n_layers: int) -> None:
    """The numbers of the activation, which are tensors in a checkpoint."""
    found = dict(checkpoint(folder))
    adders = {
        "alpha_p": writer.add_xielu_alpha_p,
        "alpha_n": writer.add_xielu_alpha_n,
        "beta": writer.add_xielu_beta,
        "eps": writer.add_xielu_eps,
    }
    for name, add in adders.items():
        add([found[f"model.layers.{index}.mlp.act_fn.{name}"].float().item() for index in range(n_layers)])


def add_experts(writer: gguf.GGUFWriter, config: Any, n_experts: int) -> None:
    writer.add_expert_count(n_experts)
    used = getattr(config, "num_experts_per_tok", 0) or config.top_k_experts
    writer.add_expert_used_count(used)
    if hasattr(config, "moe_intermediate_size"):
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if hasattr(config, "shared_expert_intermediate_size"):
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if config.model_type == "granitemoeshared":
        writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)
    if config.model_type == "lfm2_moe":
        writer.add_leading_dense_block_count(config.num_dense_layers)
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    if config.model_type == "gpt_oss":
        writer.add_expert_feed_forward_length(config.intermediate_size)
    if config.model_type == "nemotron_h":
        writer.add_expert_shared_count(config.n_shared_experts)
        writer.add_expert_shared_feed_forward_length(config.moe_shared_expert_intermediate_size)
        writer.add_expert_weights_norm(config.norm_topk_prob)
        writer.add_expert_weights_scale(config.routed_scaling_factor)
        writer.add_expert_group_count(config.n_group)
    if config.model_type in {"deepseek_v2", "deepseek_v3", "glm4_moe_lite"}:
        kinds = getattr(config, "mlp_layer_types", None)
        writer.add_leading_dense_block_count(kinds.count("dense") if kinds else config.first_k_dense_replace)
        writer.add_expert_shared_count(config.n_shared_experts)
        writer.add_expert_weights_scale(config.routed_scaling_factor)
        if config.model_type == "deepseek_v2":
            writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SOFTMAX)
        else:
            writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
            writer.add_expert_weights_norm(config.norm_topk_prob)
        if config.n_group:
            writer.add_expert_group_count(config.n_group)
            writer.add_expert_group_used_count(config.topk_group)
    if config.model_type == "glm4_moe":
        writer.add_leading_dense_block_count(config.first_k_dense_replace)
        writer.add_expert_shared_count(config.n_shared_experts)
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)
        writer.add_expert_weights_scale(config.routed_scaling_factor)
        writer.add_expert_weights_norm(config.norm_topk_prob)
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def add_mamba(writer: gguf.GGUFWriter, config: Any) -> None:
    writer.add_ssm_conv_kernel(config.mamba_d_conv)
    writer.add_ssm_state_size(config.mamba_d_state)
    writer.add_ssm_group_count(config.mamba_n_groups)
    writer.add_ssm_inner_size(config.mamba_expand * config.hidden_size)
    writer.add_ssm_time_step_rank(config.mamba_n_heads)
    writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)
    writer.add_rope_scaling_finetuned(config.position_embedding_type == "rope")


def add_nemotron_mamba(writer: gguf.GGUFWriter, config: Any) -> None:
    writer.add_ssm_conv_kernel(config.conv_kernel)
    writer.add_ssm_state_size(config.ssm_state_size)
    writer.add_ssm_group_count(config.n_groups)
    writer.add_ssm_inner_size(config.mamba_num_heads * config.mamba_head_dim)
    writer.add_ssm_time_step_rank(config.mamba_num_heads)
    writer.add_rope_scaling_finetuned(False)
    writer.add_vocab_size(config.vocab_size)


def kv_heads(config: Any) -> int | list[int]:
    """Heads of keys and values; a number a layer where some are convolutions and have none."""
    kinds, n = getattr(config, "layer_types", None) or [], config.num_key_value_heads
    if config.model_type not in {"lfm2", "lfm2_moe", "granitemoehybrid", "nemotron_h"}:
        return int(n)
    return [n if kind == "full_attention" else 0 for kind in kinds]


def ffn_size(config: Any) -> int | list[int]:
    """What config.json's size of a feed-forward network comes to; a number a layer where some have none."""
    if config.model_type == "nemotron_h":
        sizes = {"mlp": config.intermediate_size, "moe": config.moe_intermediate_size}
        return [sizes.get(kind, 0) for kind in config.layer_types]
    if config.model_type == "granitemoehybrid" and not config.num_local_experts:
        return int(config.shared_intermediate_size)
    if config.model_type != "lfm2" or not config.block_auto_adjust_ff_dim:
        return int(config.intermediate_size)
    size, step = int(config.block_ffn_dim_multiplier * int(2 * config.intermediate_size / 3)), config.block_multiple_of
    return int(step * -(-size // step))


def add_gemma4(writer: gguf.GGUFWriter, config: Any) -> None:
    """Heads by kind of layer, feed-forward sizes by layer, and which layers have keys and values of their own."""
    windowed = [kind == "sliding_attention" for kind in config.layer_types]
    full = next(iter(config.per_layer_config[layer] for layer, short in enumerate(windowed) if not short))
    n_own = config.num_hidden_layers - config.num_kv_shared_layers
    n_kv_heads = [config.num_key_value_heads if short else full.num_key_value_heads for short in windowed]
    sizes = [config.intermediate_size * (1 if i < n_own else 2) for i in range(config.num_hidden_layers)]
    writer.add_feed_forward_length(sizes if config.use_double_wide_mlp else config.intermediate_size)
    writer.add_head_count_kv(n_kv_heads)
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern(windowed)
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(getattr(config, "hidden_size_per_layer_input", 0))
    for add in (writer.add_key_length, writer.add_value_length, writer.add_rope_dimension_count):
        add(full.head_dim)
    for add in (writer.add_key_length_swa, writer.add_value_length_swa, writer.add_rope_dimension_count_swa):
        add(config.head_dim)
    writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
    writer.add_final_logit_softcapping(config.final_logit_softcapping)


def add_delta_net(writer: gguf.GGUFWriter, config: Any) -> None:
    writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
    writer.add_ssm_state_size(config.linear_key_head_dim)
    writer.add_ssm_group_count(config.linear_num_key_heads)
    writer.add_ssm_time_step_rank(config.linear_num_value_heads)
    writer.add_ssm_inner_size(config.linear_num_value_heads * config.linear_value_head_dim)
    writer.add_full_attention_interval(4)


def tiled_heads(name: str, data: torch.Tensor, config: Any) -> torch.Tensor:
    """A weight of linear attention with value heads in the order of ggml's broadcast: the first of every key head,
    then the second of each; a checkpoint has those of one key head together."""
    n_keys, n_values = config.linear_num_key_heads, config.linear_num_value_heads
    dim = 1 if name.endswith("out_proj.weight") else 0
    keys = 2 * n_keys * config.linear_key_head_dim if "qkv" in name or "conv1d" in name else 0
    first, heads = data.split((keys, data.shape[dim] - keys), dim)
    turned = heads.unflatten(dim, (n_keys, n_values // n_keys, -1)).transpose(dim, dim + 1).flatten(dim, dim + 2)
    return torch.cat((first, turned), dim)


def granite_parts(hf_name: str, data: torch.Tensor, config: Any) -> Iterator[tuple[str, Array]]:
    """Gate and up apart, of all experts or of the part that every token uses: the only one where there are none."""
    block, shared = f"blk.{hf_name.split('.')[2]}", "shared_mlp" in hf_name
    suffix = "_exps" if not shared else "_shexp" if config.num_local_experts else ""
    if "output_linear" in hf_name:
        yield f"{block}.ffn_down{suffix}.weight", data.numpy()
        return
    for part, rows in zip(("gate", "up"), data.chunk(2, dim=-2), strict=True):
        yield f"{block}.ffn_{part}{suffix}.weight", rows.numpy()


def muse_norms(block: str, config: Any) -> Iterator[tuple[str, Array]]:
    """Norms of q and k without weights, as norms with some: the factor of queries, and ones."""
    for part, value in (("q", config.qk_scale_factor), ("k", 1.0)):
        yield f"{block}.attn_{part}_norm.weight", np.full(config.head_dim, value, np.float32)


def halves_of_latents(block: str, data: torch.Tensor, config: Any) -> Iterator[tuple[str, Array]]:
    """What makes keys and values of a latent, head by head; that of keys transposed."""
    heads = data.unflatten(0, (config.num_attention_heads, -1))
    keys, values = heads.split((config.qk_nope_head_dim, config.v_head_dim), 1)
    yield f"{block}.attn_k_b.weight", keys.transpose(1, 2).contiguous().numpy()
    yield f"{block}.attn_v_b.weight", values.contiguous().numpy()


def qkv_and_z(block: str, data: torch.Tensor, config: Any) -> Iterator[tuple[str, Array]]:
    """What each head of keys has in turn, apart: all queries, keys and values, and all gates."""
    key_dim, n_keys = config.linear_key_head_dim, config.linear_num_key_heads
    values = config.linear_value_head_dim * config.linear_num_value_heads // n_keys
    parts = data.unflatten(0, (n_keys, -1)).split((key_dim, key_dim, values, values), 1)
    q, k, v, z = (part.flatten(0, 1).numpy() for part in parts)
    yield f"{block}.attn_qkv.weight", np.concatenate((q, k, v))
    yield f"{block}.attn_gate.weight", z


def global_rope(config: Any) -> dict[str, Any]:
    """The rope settings of the full-attention layers."""
    rope: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    return dict(rope.get("full_attention", rope))


def add_rope_scaling(writer: gguf.GGUFWriter, config: Any, rope: dict[str, Any]) -> None:
    kind = rope.get("rope_type", "default")
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if "beta_fast" in rope:
            writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
            writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
        if "kv_lora_rank" in config.to_dict():  # a tenth, for the sake of its first files
            writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])
        if "llama_4_scaling_beta" in rope:
            writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
            writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])
    elif kind == "longrope":
        original = rope["original_max_position_embeddings"]
        stretch = config.max_position_embeddings / original
        writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(stretch) / math.log(original)))


def rope_tensors(config: Any) -> Iterator[tuple[str, Array]]:
    """The divisors of each rope frequency, where a scaling keeps them as tensors."""
    rope = global_rope(config)
    if rope.get("rope_type", "default") == "default":
        return
    if rope["rope_type"] == "longrope":
        yield "rope_factors_long.weight", np.array(rope["long_factor"], dtype=np.float32)
        yield "rope_factors_short.weight", np.array(rope["short_factor"], dtype=np.float32)
    elif rope["rope_type"] == "proportional":
        n_pairs = config.per_layer_config[config.layer_types.index("full_attention")].head_dim // 2
        n_turning = int(n_pairs * rope["partial_rotary_factor"])
        yield "rope_freqs.weight", np.array([1.0] * n_turning + [1e30] * (n_pairs - n_turning), dtype=np.float32)
    elif rope["rope_type"] == "llama3":
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config)
        head_dim = scaled.numel() * 2
        plain = rope["rope_theta"] ** -(torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        yield "rope_freqs.weight", (plain / scaled.double()).float().numpy()


def checkpoint(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor of every shard as fp32."""
    for shard in sorted(folder.glob("*.safetensors")):
        with safe_open(shard, framework="pt") as file:
            for hf_name in sorted(filter(is_text, file.keys())):
                yield hf_name, file.get_tensor(hf_name).float()


def tensors(parts: Iterable[tuple[str, torch.Tensor]], arch: str, config: Any) -> Iterator[tuple[str, Array]]:
    """The tensors of a checkpoint, renamed and rearranged as GGUF has it."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for hf_name, data in parts:
        if ".act_fn." in hf_name:
            continue  # hyperparameters there
        if hf_name.endswith("in_proj_qkvz.weight"):
            yield from qkv_and_z(f"blk.{hf_name.split('.')[2]}", data, config)
            continue
        if arch in {"gpt-oss", "qwen3vlmoe"} and (fused := hf_name.partition(".mlp.experts."))[1]:
            yield from fused_experts(fused[0], fused[2], data, arch)
            continue
        if hf_name.endswith(("input_linear.weight", "shared_mlp.output_linear.weight")):
            yield from granite_parts(hf_name, data, config)
            continue
        if hf_name.endswith("kv_b_proj.weight"):
            yield from halves_of_latents(f"blk.{hf_name.split('.')[2]}", data, config)
            continue
        hf_name = drafting_name(hf_name, config)
        if arch == "muse-glimmer" and hf_name.endswith("self_attn.q_proj.weight"):
            yield from muse_norms(f"blk.{hf_name.split('.')[3]}", config)
        of_text = re.sub(r"(language|text)_model\.", "", hf_name)
        name = gguf_name(of_text.replace("model.model.", "model."), arch)
        short = name.split(".")[-2]
        if arch in PAIRS_INTERLEAVED and short in heads:
            data = interleave_pairs(data, heads[short])
        as_written = {"ssm_norm", *(["output_norm"] if arch == "muse-glimmer" else [])}
        if arch in NORMS_AROUND_ZERO and short.endswith("norm") and short not in as_written:
            data = data + 1
        if arch != "qwen3next" and "linear_attn" in hf_name and short != "ssm_norm":
            data = tiled_heads(hf_name, data, config)
        if name.endswith(("ssm_conv1d.weight", "shortconv.conv.weight")):
            data = data.squeeze(1)
        if hf_name.endswith("A_log"):
            data = -data.exp()
        if hf_name.endswith((".mamba.A_log", ".mamba.D", ".mixer.A_log", ".mixer.D")):
            data = data[:, None]
        if hf_name.endswith((".mamba.norm.weight", ".mixer.norm.weight")):
            n_groups = config.n_groups if ".mixer." in hf_name else config.mamba_n_groups
            data = data.unflatten(0, (n_groups, -1))
        if data.ndim > 1:  # the gate of a shared expert is a vector there
            data = data.squeeze(0)
        yield name, data.numpy()


def drafting_name(hf_name: str, config: Any) -> str:
    """The layer that drafts is one more after all others; what is around it belongs to it."""
    if not hf_name.startswith("mtp."):
        return hf_name
    index, part = config.num_hidden_layers, hf_name.removeprefix("mtp.")
    if part.startswith("layers.0."):
        return f"model.layers.{index}.{part.removeprefix('layers.0.')}"
    return f"model.layers.{index}.mtp.{part}"


def fused_experts(layer: str, part: str, data: torch.Tensor, arch: str) -> Iterator[tuple[str, Array]]:
    """All experts of a layer. Those of gpt-oss lie transposed, and their rows of gate and up take turns."""
    kind, number = "bias" if part.endswith("_bias") else "weight", layer.rpartition(".")[2]
    data = data.transpose(1, 2) if kind == "weight" and arch == "gpt-oss" else data
    gate, up = (data[:, ::2], data[:, 1::2]) if arch == "gpt-oss" else data.chunk(2, 1)
    parts = {"gate": gate, "up": up} if part.startswith("gate_up") else {"down": data}
    for name, rows in parts.items():
        yield f"blk.{number}.ffn_{name}_exps.{kind}", rows.contiguous().numpy()


def stacked(every: Iterable[tuple[str, Array]]) -> Iterator[tuple[str, Array]]:
    """The matrices of all experts of a layer as one tensor [n_experts, rows, columns]."""
    experts: dict[str, dict[int, Array]] = {}
    for name, data in every:
        name, _, expert = name.partition("#")
        if expert:
            experts.setdefault(name, {})[int(expert)] = data
        else:
            yield name, data
    for name, by_number in experts.items():
        yield name, np.stack([by_number[expert] for expert in sorted(by_number)])


def is_text(hf_name: str) -> bool:
    """Not of the eyes of a model that sees: a GGUF has those in a file of their own."""
    others = (
        "visual",
        "vision_tower",
        "vision_model",
        "connector",
        "vision_adapter",
        "vision_projection",
        "embed_vision",
        "vision_embedder",
        "multi_modal_projector",
    )
    return not any(part.startswith(others) for part in hf_name.split("."))


def gguf_name(hf_name: str, arch: str) -> str:
    """`model.layers.3.self_attn.q_proj.weight` → `blk.3.attn_q.weight`; of an expert with `#` and its number."""
    if hf_name.endswith((".mamba.D", ".mixer.D")):
        return f"blk.{hf_name.split('.')[2]}.ssm_d"
    if hf_name.endswith((".A_log", ".dt_bias")):
        return f"blk.{hf_name.split('.')[2]}.{'ssm_a' if hf_name.endswith('A_log') else 'ssm_dt.bias'}"
    if found := next((name for ending, name in GEMMA4_BARE.items() if hf_name.endswith(ending)), ""):
        return f"blk.{hf_name.split('.')[2]}.{found}"
    if hf_name.endswith((".gate.e_score_correction_bias", ".feed_forward.expert_bias")):
        return f"blk.{hf_name.split('.')[2]}.exp_probs_b.bias"
    if hf_name.endswith(".self_attn.sinks"):
        return f"blk.{hf_name.split('.')[2]}.attn_sinks.weight"
    stem, kind = hf_name.rsplit(".", 1)
    layer = re.fullmatch(r"(?:model|backbone)\.layers\.(\d+)\.(.+)", stem)
    if layer is None:
        return f"{MODEL_TENSORS[stem]}.{kind}"
    number, part = layer.groups()
    if expert := re.fullmatch(r"(?:mlp|block_sparse_moe|feed_forward|mixer)\.experts\.(\d+)\.(.+)", part):
        return f"blk.{number}.{EXPERT_TENSORS[expert[2]]}.{kind}#{expert[1]}"
    if part == "post_attention_layernorm" and arch in POST_NORMED:
        return f"blk.{number}.post_attention_norm.{kind}"
    return f"blk.{number}.{LAYER_TENSORS[part]}.{kind}"


def interleave_pairs(data: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Reorder the rows of each head from halves (i, i + d/2) to neighbours (2i, 2i + 1)."""
    rows_per_half = data.shape[0] // n_heads // 2
    halves = data.reshape(n_heads, 2, rows_per_half, *data.shape[1:])
    return halves.swapaxes(1, 2).reshape(data.shape)


def encode(data: Array, qtype: str) -> tuple[Array, gguf.GGMLQuantizationType]:
    wanted = gguf.GGMLQuantizationType[qtype]
    if data.ndim == 1:
        wanted = gguf.GGMLQuantizationType.F32
    elif data.shape[-1] % gguf.GGML_QUANT_SIZES[wanted][0]:
        wanted = gguf.GGMLQuantizationType.F16
    return gguf.quants.quantize(data, wanted), wanted


def add_vocabulary(writer: gguf.GGUFWriter, folder: Path) -> None:
    """The byte-level BPE of tokenizer.json as GGUF metadata."""
    content = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"] | {token["content"]: token["id"] for token in content["added_tokens"]}
    kinds = {
        token["content"]: gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
        for token in content["added_tokens"]
    }
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.get(token, gguf.TokenType.NORMAL) for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in content["model"]["merges"]])
    writer.add_bos_token_id(vocabulary[settings["bos_token"]])
    writer.add_eos_token_id(vocabulary[settings["eos_token"]])
    writer.add_add_bos_token(settings["add_bos_token"])

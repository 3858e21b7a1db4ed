"""Tensor names of a decoder in the two formats; `{}` is the number of the layer. Torch-free.

Some have several spellings, separated by blanks: in a GGUF first that of llama.cpp's converter, then Ollama's; in a
checkpoint first that of transformers, then of MLX's converter.
"""

from collections.abc import Container

GGUF_NAMES: dict[str, str] = {
    "embed": "token_embd.weight",
    "output_norm": "output_norm.weight",
    "output": "output.weight",
    "per_layer_embed": "per_layer_token_embd.weight",
    "per_layer_projection": "per_layer_model_proj.weight",
    "per_layer_norm": "per_layer_proj_norm.weight",
    "attn_norm": "blk.{}.attn_norm.weight",
    "q": "blk.{}.attn_q.weight",
    "k": "blk.{}.attn_k.weight",
    "v": "blk.{}.attn_v.weight",
    "o": "blk.{}.attn_output.weight blk.{}.attn_out.weight",
    "q_bias": "blk.{}.attn_q.bias",
    "k_bias": "blk.{}.attn_k.bias",
    "v_bias": "blk.{}.attn_v.bias",
    "o_bias": "blk.{}.attn_output.bias blk.{}.attn_out.bias",
    "attn_gate": "blk.{}.attn_gate.weight",
    "sinks": "blk.{}.attn_sinks.weight blk.{}.attn_sinks",
    "q_norm": "blk.{}.attn_q_norm.weight",
    "k_norm": "blk.{}.attn_k_norm.weight",
    "q_a": "blk.{}.attn_q_a.weight",
    "q_a_norm": "blk.{}.attn_q_a_norm.weight",
    "q_b": "blk.{}.attn_q_b.weight",
    "kv_a": "blk.{}.attn_kv_a_mqa.weight",
    "kv_a_norm": "blk.{}.attn_kv_a_norm.weight",
    "k_b": "blk.{}.attn_k_b.weight",
    "v_b": "blk.{}.attn_v_b.weight",
    "kv_b": "blk.{}.attn_kv_b.weight",
    "attn_post_norm": "blk.{}.post_attention_norm.weight",
    "ffn_norm": "blk.{}.ffn_norm.weight",
    "gate": "blk.{}.ffn_gate.weight",
    "up": "blk.{}.ffn_up.weight",
    "down": "blk.{}.ffn_down.weight",
    "gate_bias": "blk.{}.ffn_gate.bias",
    "up_bias": "blk.{}.ffn_up.bias",
    "down_bias": "blk.{}.ffn_down.bias",
    "ffn_post_norm": "blk.{}.post_ffw_norm.weight",
    "besides_gate": "blk.{}.inp_gate.weight",
    "besides_out": "blk.{}.proj.weight",
    "besides_norm": "blk.{}.post_norm.weight",
    "out_scale": "blk.{}.layer_output_scale.weight",
    "mixed": "blk.{}.attn_qkv.weight",
    "z": "blk.{}.attn_gate.weight",
    "alpha": "blk.{}.ssm_alpha.weight",
    "beta": "blk.{}.ssm_beta.weight",
    "conv": "blk.{}.ssm_conv1d.weight",
    "conv_bias": "blk.{}.ssm_conv1d.bias",
    "decay": "blk.{}.ssm_a",
    "skip": "blk.{}.ssm_d",
    "dt_bias": "blk.{}.ssm_dt.bias blk.{}.ssm_dt",
    "gated_norm": "blk.{}.ssm_norm.weight",
    "out": "blk.{}.ssm_out.weight",
    "draft_pre": "nextn.pre_projection.weight",
    "draft_to_hidden": "nextn.post_projection.weight",
    "draft_proj": "blk.{}.nextn.eh_proj.weight",
    "draft_embed_norm": "blk.{}.nextn.enorm.weight",
    "draft_hidden_norm": "blk.{}.nextn.hnorm.weight",
    "draft_norm": "blk.{}.nextn.shared_head_norm.weight",
    "draft_embed": "blk.{}.nextn.embed_tokens.weight",
    "draft_output": "blk.{}.nextn.shared_head_head.weight",
}
GGUF_EXPERTS: dict[str, str] = {  # experts_gate and its kind: of all experts, [n_experts, rows, columns]
    "router": "blk.{}.ffn_gate_inp.weight",
    "router_bias": "blk.{}.ffn_gate_inp.bias",
    "choice_bias": "blk.{}.exp_probs_b.bias",
    "experts_gate": "blk.{}.ffn_gate_exps.weight",
    "experts_up": "blk.{}.ffn_up_exps.weight",
    "experts_gate_up": "blk.{}.ffn_gate_up_exps.weight",
    "experts_down": "blk.{}.ffn_down_exps.weight",
    "experts_gate_bias": "blk.{}.ffn_gate_exps.bias",
    "experts_up_bias": "blk.{}.ffn_up_exps.bias",
    "experts_gate_up_bias": "blk.{}.ffn_gate_up_exps.bias",
    "experts_down_bias": "blk.{}.ffn_down_exps.bias",
    "shared_gate": "blk.{}.ffn_gate_shexp.weight",
    "shared_up": "blk.{}.ffn_up_shexp.weight",
    "shared_gate_up": "blk.{}.ffn_gate_up_shexp.weight",
    "shared_down": "blk.{}.ffn_down_shexp.weight",
    "shared_router": "blk.{}.ffn_gate_inp_shexp.weight",
}
# Eyes, ears and what drafts tokens, where Ollama's converter put them into the same file.
GGUF_OTHER_PARTS = ("v.", "mm.", "a.", "s.", "mtp.", "model.vision_tower.")
HF_NAMES: dict[str, str] = {
    "embed": "embed_tokens.weight",
    "output_norm": "norm.weight",
    "output": "lm_head.weight",
    "per_layer_embed": "embed_tokens_per_layer.weight",
    "per_layer_projection": "per_layer_model_projection.weight",
    "per_layer_norm": "per_layer_projection_norm.weight",
    "attn_norm": "layers.{}.input_layernorm.weight",
    "q": "layers.{}.self_attn.q_proj.weight",
    "k": "layers.{}.self_attn.k_proj.weight",
    "v": "layers.{}.self_attn.v_proj.weight",
    "o": "layers.{}.self_attn.o_proj.weight",
    "q_bias": "layers.{}.self_attn.q_proj.bias",
    "k_bias": "layers.{}.self_attn.k_proj.bias",
    "v_bias": "layers.{}.self_attn.v_proj.bias",
    "o_bias": "layers.{}.self_attn.o_proj.bias",
    "attn_gate": "layers.{}.self_attn.gate_proj.weight",
    "sinks": "layers.{}.self_attn.sinks",
    "q_norm": "layers.{}.self_attn.q_norm.weight",
    "k_norm": "layers.{}.self_attn.k_norm.weight",
    "q_a": "layers.{}.self_attn.q_a_proj.weight",
    "q_a_norm": "layers.{}.self_attn.q_a_layernorm.weight",
    "q_b": "layers.{}.self_attn.q_b_proj.weight",
    "kv_a": "layers.{}.self_attn.kv_a_proj_with_mqa.weight",
    "kv_a_norm": "layers.{}.self_attn.kv_a_layernorm.weight",
    "k_b": "layers.{}.self_attn.k_b_proj.weight layers.{}.self_attn.embed_q.weight",
    "v_b": "layers.{}.self_attn.v_b_proj.weight layers.{}.self_attn.unembed_out.weight",
    "kv_b": "layers.{}.self_attn.kv_b_proj.weight",
    "ffn_norm": "layers.{}.post_attention_layernorm.weight",
    "gate": "layers.{}.mlp.gate_proj.weight",
    "up": "layers.{}.mlp.up_proj.weight",
    "down": "layers.{}.mlp.down_proj.weight",
    "gate_bias": "layers.{}.mlp.gate_proj.bias",
    "up_bias": "layers.{}.mlp.up_proj.bias",
    "down_bias": "layers.{}.mlp.down_proj.bias",
    "besides_gate": "layers.{}.per_layer_input_gate.weight",
    "besides_out": "layers.{}.per_layer_projection.weight",
    "besides_norm": "layers.{}.post_per_layer_input_norm.weight",
    "out_scale": "layers.{}.layer_scalar",
    "mixed": "layers.{}.linear_attn.in_proj_qkv.weight",
    "z": "layers.{}.linear_attn.in_proj_z.weight",
    "alpha": "layers.{}.linear_attn.in_proj_a.weight",
    "beta": "layers.{}.linear_attn.in_proj_b.weight",
    "conv": "layers.{}.linear_attn.conv1d.weight",
    "decay": "layers.{}.linear_attn.A_log",
    "dt_bias": "layers.{}.linear_attn.dt_bias",
    "gated_norm": "layers.{}.linear_attn.norm.weight",
    "out": "layers.{}.linear_attn.out_proj.weight",
    "draft_pre": "pre_projection.weight",
    "draft_to_hidden": "post_projection.weight",
    "centroids": "masked_embedding.centroids.weight",
    "token_order": "masked_embedding.token_ordering",
    "draft_proj": "fc.weight",
    "draft_embed_norm": "pre_fc_norm_embedding.weight",
    "draft_hidden_norm": "pre_fc_norm_hidden.weight",
    "draft_norm": "norm.weight",
}
DRAFT_PREFIXES = ("mtp.", "model.mtp.", "language_model.mtp.", "model.language_model.mtp.")
HF_POST_NORM_NAMES: dict[str, str] = {
    "attn_post_norm": "layers.{}.post_attention_layernorm.weight",
    "ffn_norm": "layers.{}.pre_feedforward_layernorm.weight",
    "ffn_post_norm": "layers.{}.post_feedforward_layernorm.weight",
}
# `expert_gate` is of one expert, whose number is the second `{}`; `experts_gate` would be a tensor of all of them.
MLX_EXPERT_NAMES: dict[str, str] = {  # all experts in one, gate and up apart
    f"experts_{name}": f"layers.{{}}.mlp.switch_mlp.{name}_proj.weight" for name in ("gate", "up", "down")
}
HF_EXPERT_NAMES: dict[str, str] = {
    **MLX_EXPERT_NAMES,
    "router": "layers.{}.mlp.gate.weight",
    "expert_gate": "layers.{}.mlp.experts.{}.gate_proj.weight",
    "expert_up": "layers.{}.mlp.experts.{}.up_proj.weight",
    "expert_down": "layers.{}.mlp.experts.{}.down_proj.weight",
}
HF_FUSED_EXPERTS: dict[str, str] = {  # of all experts, where they are not apart
    "experts_gate_up": "layers.{}.mlp.experts.gate_up_proj",
    "experts_down": f"layers.{{}}.mlp.experts.down_proj {MLX_EXPERT_NAMES['experts_down']}",
}
HF_SHARED_EXPERT: dict[str, str] = {
    "shared_router": "layers.{}.mlp.shared_expert_gate.weight",
    "shared_gate": "layers.{}.mlp.shared_expert.gate_proj.weight",
    "shared_up": "layers.{}.mlp.shared_expert.up_proj.weight",
    "shared_down": "layers.{}.mlp.shared_expert.down_proj.weight",
}
HF_SHARED_EXPERTS: dict[str, str] = {  # several as one network, without a gate
    f"shared_{name}": f"layers.{{}}.mlp.shared_experts.{name}_proj.weight" for name in ("gate", "up", "down")
}
HF_MIXTRAL_NAMES: dict[str, str] = {
    **{name: spelling.replace("mlp", "block_sparse_moe", 1) for name, spelling in MLX_EXPERT_NAMES.items()},
    "router": "layers.{}.block_sparse_moe.gate.weight",
    "expert_gate": "layers.{}.block_sparse_moe.experts.{}.w1.weight",
    "expert_up": "layers.{}.block_sparse_moe.experts.{}.w3.weight",
    "expert_down": "layers.{}.block_sparse_moe.experts.{}.w2.weight",
}
HF_GPT_OSS_NAMES: dict[str, str] = {
    "router": "layers.{}.mlp.router.weight layers.{}.mlp.router.linear.weight",
    "router_bias": "layers.{}.mlp.router.bias layers.{}.mlp.router.linear.bias",
    "experts_gate_up": HF_FUSED_EXPERTS["experts_gate_up"],
    "experts_gate_up_bias": "layers.{}.mlp.experts.gate_up_proj_bias",
    "experts_gate": "layers.{}.mlp.experts.gate_proj.weight",
    "experts_gate_bias": "layers.{}.mlp.experts.gate_proj.bias",
    "experts_up": "layers.{}.mlp.experts.up_proj.weight",
    "experts_up_bias": "layers.{}.mlp.experts.up_proj.bias",
    "experts_down": "layers.{}.mlp.experts.down_proj layers.{}.mlp.experts.down_proj.weight",
    "experts_down_bias": "layers.{}.mlp.experts.down_proj_bias layers.{}.mlp.experts.down_proj.bias",
}


def name_in_file(spellings: str, tensors: Container[str], index: int = 0, prefix: str = "") -> str:
    """The name of a tensor of layer `index` in one file: the first spelling that it has, else the usual one."""
    names = [prefix + spelling.format(index) for spelling in spellings.split()]
    return next((name for name in names if name in tensors), names[0])

"""How the two formats spell the tensors of a decoder; `{}` is the number of the layer. Torch-free."""

GGUF_NAMES: dict[str, str] = {
    "embed": "token_embd.weight",
    "output_norm": "output_norm.weight",
    "output": "output.weight",
    "attn_norm": "blk.{}.attn_norm.weight",
    "q": "blk.{}.attn_q.weight",
    "k": "blk.{}.attn_k.weight",
    "v": "blk.{}.attn_v.weight",
    "o": "blk.{}.attn_output.weight",
    "q_bias": "blk.{}.attn_q.bias",
    "k_bias": "blk.{}.attn_k.bias",
    "v_bias": "blk.{}.attn_v.bias",
    "o_bias": "blk.{}.attn_output.bias",
    "q_norm": "blk.{}.attn_q_norm.weight",
    "k_norm": "blk.{}.attn_k_norm.weight",
    "attn_post_norm": "blk.{}.post_attention_norm.weight",
    "ffn_norm": "blk.{}.ffn_norm.weight",
    "gate": "blk.{}.ffn_gate.weight",
    "up": "blk.{}.ffn_up.weight",
    "down": "blk.{}.ffn_down.weight",
    "gate_bias": "blk.{}.ffn_gate.bias",
    "up_bias": "blk.{}.ffn_up.bias",
    "down_bias": "blk.{}.ffn_down.bias",
    "ffn_post_norm": "blk.{}.post_ffw_norm.weight",
    "router": "blk.{}.ffn_gate_inp.weight",
}
GGUF_EXPERTS: dict[str, str] = {  # one tensor of all experts, [n_experts, rows, columns]
    "gate": "blk.{}.ffn_gate_exps.weight",
    "up": "blk.{}.ffn_up_exps.weight",
    "down": "blk.{}.ffn_down_exps.weight",
}
HF_NAMES: dict[str, str] = {
    "embed": "embed_tokens.weight",
    "output_norm": "norm.weight",
    "output": "lm_head.weight",
    "attn_norm": "layers.{}.input_layernorm.weight",
    "q": "layers.{}.self_attn.q_proj.weight",
    "k": "layers.{}.self_attn.k_proj.weight",
    "v": "layers.{}.self_attn.v_proj.weight",
    "o": "layers.{}.self_attn.o_proj.weight",
    "q_bias": "layers.{}.self_attn.q_proj.bias",
    "k_bias": "layers.{}.self_attn.k_proj.bias",
    "v_bias": "layers.{}.self_attn.v_proj.bias",
    "o_bias": "layers.{}.self_attn.o_proj.bias",
    "q_norm": "layers.{}.self_attn.q_norm.weight",
    "k_norm": "layers.{}.self_attn.k_norm.weight",
    "ffn_norm": "layers.{}.post_attention_layernorm.weight",
    "gate": "layers.{}.mlp.gate_proj.weight",
    "up": "layers.{}.mlp.up_proj.weight",
    "down": "layers.{}.mlp.down_proj.weight",
    "gate_bias": "layers.{}.mlp.gate_proj.bias",
    "up_bias": "layers.{}.mlp.up_proj.bias",
    "down_bias": "layers.{}.mlp.down_proj.bias",
}
HF_POST_NORM_NAMES: dict[str, str] = {
    "attn_post_norm": "layers.{}.post_attention_layernorm.weight",
    "ffn_norm": "layers.{}.pre_feedforward_layernorm.weight",
    "ffn_post_norm": "layers.{}.post_feedforward_layernorm.weight",
}
# The second `{}` is the number of the expert.
HF_EXPERT_NAMES: dict[str, str] = {
    "router": "layers.{}.mlp.gate.weight",
    "expert_gate": "layers.{}.mlp.experts.{}.gate_proj.weight",
    "expert_up": "layers.{}.mlp.experts.{}.up_proj.weight",
    "expert_down": "layers.{}.mlp.experts.{}.down_proj.weight",
}
HF_MIXTRAL_NAMES: dict[str, str] = {
    "router": "layers.{}.block_sparse_moe.gate.weight",
    "expert_gate": "layers.{}.block_sparse_moe.experts.{}.w1.weight",
    "expert_up": "layers.{}.block_sparse_moe.experts.{}.w3.weight",
    "expert_down": "layers.{}.block_sparse_moe.experts.{}.w2.weight",
}

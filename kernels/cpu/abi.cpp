// What the caller's mirror of the ABI is compared with when the library is loaded: localrun/backends/cpu/abi_check.py.
#include "localrun_cpu.h"
#include "ops/op.h"

#include <stddef.h>

// The preprocessor expands no macro within itself: FIELDS leaves its own name to be found as the line is read again, a field
// a time.
#define READ_64_TIMES(...) READ_16_TIMES(READ_16_TIMES(READ_16_TIMES(READ_16_TIMES(__VA_ARGS__))))
#define READ_16_TIMES(...) READ_4_TIMES(READ_4_TIMES(READ_4_TIMES(READ_4_TIMES(__VA_ARGS__))))
#define READ_4_TIMES(...) READ(READ(READ(READ(__VA_ARGS__))))
#define READ(...) __VA_ARGS__
#define NO_ARGUMENTS ()
#define FIELDS_AGAIN() FIELDS
#define FIELDS(type, field, ...)                                             \
  {#type "." #field, offsetof(type, field), sizeof(((type*)nullptr)->field)} \
  __VA_OPT__(, FIELDS_AGAIN NO_ARGUMENTS(type, __VA_ARGS__))

#define STRUCTURE(type, ...) {#type, 0, sizeof(type)}, READ_64_TIMES(FIELDS(type, __VA_ARGS__))
#define CONSTANT(name) {#name, name, 0}

static const lr_abi_entry kEntries[] = {
    STRUCTURE(lr_matrix, n_rows, n_cols, layout, reserved, data, n_bytes),
    STRUCTURE(lr_value, f32, q8, q8_scale, q8_sum, bf16, width, stride, formats, reserved),
    STRUCTURE(lr_embed, weight, out, scale, image_token),
    STRUCTURE(lr_embed_mapped, rows, out, scale, gguf_type, n_rows, n_cols, image_token),
    STRUCTURE(lr_add_image_rows, x, out, place),
    STRUCTURE(lr_norm, x, residual, out, weight, eps, size),
    STRUCTURE(lr_adapter, a, t, b, scale, reserved),
    STRUCTURE(lr_linear, a, order, weight, bias, scale, adapter, n_adapters, out, residual, n_weights, act, out_scale,
              make_formats),
    STRUCTURE(lr_rope_append, q, k, v, out, sink_out, q_weight, k_weight, layer, rope, qk_norm, eps, v_norm, reserved),
    STRUCTURE(lr_attention, q, sink_q, out, sinks, layer, window, sink_window, scale, softcap, spans),
    STRUCTURE(lr_logits, a, weight, rows, gathered, scale, softcap),
    STRUCTURE(lr_routes, expert, weight, place, first, n_experts, top_k),
    STRUCTURE(lr_route, scores, a, chosen, routes, choice_bias, normalize, reads_f32, sigmoid, scale, expert_scale, n_groups,
              n_groups_used, group_rank, reserved),
    STRUCTURE(lr_experts, a, weight, bias, scale, out, routes, act, make_formats),
    STRUCTURE(lr_combine, y, shared, shared_gate, residual, out, routes, scale, reserved),
    STRUCTURE(lr_sigmoid_mul, x, gate, out),
    STRUCTURE(lr_gelu_mul, gate, x, out, first, reserved),
    STRUCTURE(lr_xielu, x, out, positive, negative, linear, limit),
    STRUCTURE(lr_clamp, x, out, low, high),
    STRUCTURE(lr_scaling, x, out, factor, reserved),
    STRUCTURE(lr_layer_norm, x, out, weight, bias, eps, reserved),
    STRUCTURE(lr_self_attention, q, k, v, out, n_heads, rope, scale, reserved),
    STRUCTURE(lr_will_need, weight, routes),
    STRUCTURE(lr_short_conv, x, out, weight, bias, taps, silu, layer, state_at, gated, reserved),
    STRUCTURE(lr_gated_delta_rule, qkv, z, alpha, beta, out, decay, dt_bias, norm, n_key_heads, n_value_heads, key_dim,
              value_dim, tiled, layer, state_at, eps),
    STRUCTURE(lr_selective_scan, xbc, z, dt, out, decay, dt_bias, skip, norm, n_heads, head_dim, n_groups, state_dim, layer,
              state_at, eps, reserved),
    STRUCTURE(lr_head_linear, x, order, a, weight, bias, scale, out, n_heads, reserved),
    STRUCTURE(lr_latent_append, q, q_rope, latent, k_rope, out, layer, rope),
    STRUCTURE(lr_instruction, op, reserved, embed, norm, linear, rope_append, attention, logits, route, experts, combine,
              sigmoid_mul, short_conv, gated_delta_rule, selective_scan, embed_mapped, gelu_mul, scale, will_need, layer_norm,
              self_attention, xielu, add_image_rows, clamp, head_linear, latent_append),
    STRUCTURE(lr_kv_pool, pool, block_bytes, layer_offset),
    STRUCTURE(lr_cache_layer, blocks, ring, group, n_heads, n_kv_heads, head_dim, codec, state_size, value_dim,
              reserved),
    STRUCTURE(lr_sequence, table, first, sink, ring, ring_sink, write_from, state, ring_first, length),
    STRUCTURE(lr_adjust, seen, ids, counts, bias_ids, bias, n_seen, n_ids, n_bias, repeat, presence, frequency,
              inv_temperature),
    STRUCTURE(lr_candidates, ids, values, logsumexp, n_candidates, finite),
    STRUCTURE(lr_step, token, position, reach, row_sequence, sequence, logits_row, adjust, candidates, cos, sin, sink_cos,
              sink_sin, rope_half, query_scale, buffer_row, buffer, added, cancel, n_rows, n_sequences, n_logits, n_buffer,
              n_added, reserved),
    STRUCTURE(lr_program, instruction, layer, n_instructions, n_layers),
    STRUCTURE(lr_kv_codes, codes, scale, offset),
    STRUCTURE(lr_draw, row, top_k, temperature, top_p, min_p, u),

    CONSTANT(LR_BLOCK_TOKENS), CONSTANT(LR_STRIDE), CONSTANT(LR_MAX_HEAD_DIM), CONSTANT(LR_MAX_KEY_DIM),
    CONSTANT(LR_MAX_WEIGHTS), CONSTANT(LR_MAX_CANDIDATES), CONSTANT(LR_SCALE_DIMS), CONSTANT(LR_SCRATCH_BYTES),
    CONSTANT(LR_NUMERICS_VERSION), CONSTANT(LR_ADAPTER_SPAN),
    CONSTANT(LR_OK), CONSTANT(LR_CANCELLED), CONSTANT(LR_NO_MEMORY), CONSTANT(LR_FORMAT_Q8), CONSTANT(LR_FORMAT_Q16),
    CONSTANT(LR_FORMAT_BF16), CONSTANT(LR_QK_NORM_NONE), CONSTANT(LR_QK_NORM_HEAD), CONSTANT(LR_QK_NORM_ROW),
    CONSTANT(LR_ACT_NONE), CONSTANT(LR_ACT_SILU_MUL), CONSTANT(LR_ACT_GELU_MUL), CONSTANT(LR_ACT_CLAMPED_SILU_MUL),
    CONSTANT(LR_ACT_RELU_SQUARED), CONSTANT(LR_ACT_GELU), CONSTANT(LR_ACT_GELU_ERF), CONSTANT(LR_ACT_GELU_QUICK),
    CONSTANT(LR_KV_F32), CONSTANT(LR_KV_F16), CONSTANT(LR_KV_Q8), CONSTANT(LR_KV_K8V4), CONSTANT(LR_KV_Q4),
    CONSTANT(LR_OP_EMBED), CONSTANT(LR_OP_NORM), CONSTANT(LR_OP_LINEAR), CONSTANT(LR_OP_ROPE_APPEND), CONSTANT(LR_OP_ATTENTION),
    CONSTANT(LR_OP_LOGITS), CONSTANT(LR_OP_ROUTE), CONSTANT(LR_OP_EXPERTS), CONSTANT(LR_OP_COMBINE),
    CONSTANT(LR_OP_SIGMOID_MUL), CONSTANT(LR_OP_SHORT_CONV), CONSTANT(LR_OP_GATED_DELTA_RULE), CONSTANT(LR_OP_SELECTIVE_SCAN),
    CONSTANT(LR_OP_EMBED_MAPPED), CONSTANT(LR_OP_GELU_MUL), CONSTANT(LR_OP_SCALE), CONSTANT(LR_OP_WILL_NEED),
    CONSTANT(LR_OP_LAYER_NORM), CONSTANT(LR_OP_SELF_ATTENTION), CONSTANT(LR_OP_XIELU), CONSTANT(LR_OP_ADD_IMAGE_ROWS),
    CONSTANT(LR_OP_CLAMP), CONSTANT(LR_OP_HEAD_LINEAR), CONSTANT(LR_OP_LATENT_APPEND), CONSTANT(LR_MAX_TAPS),
    CONSTANT(LR_DELTA_PANEL), CONSTANT(LR_PROBE_INT8), CONSTANT(LR_PROBE_F16),
    {nullptr, 0, 0},
};

const lr_abi_entry* lr_abi(void) { return kEntries; }

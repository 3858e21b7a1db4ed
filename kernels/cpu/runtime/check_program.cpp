#include "runtime/check.h"
#include "layouts/layouts.h"

#include <math.h>

namespace {

bool holds(const lr_value* value, int64_t width) {
  return value && value->f32 && value->width >= width && value->stride >= value->width;
}

bool is_matrix(const lr_matrix* matrix) {
  return matrix && matrix->data && matrix->n_rows > 0 && matrix->n_cols > 0 && matrix->n_bytes > 0;
}

// y = W·a for every row of a.
bool multiplies(const lr_matrix* matrix, const lr_value* a) {
  return is_matrix(matrix) && holds(a, matrix->n_cols) && a->width == matrix->n_cols;
}

bool has_room(const lr_kv_pool* pool, int64_t bytes) {
  if (!pool->pool || pool->block_bytes < 1) return false;
  return pool->layer_offset >= 0 && pool->layer_offset + bytes <= pool->block_bytes;
}

int32_t value_dim_of(const lr_cache_layer* layer) { return layer->value_dim ? layer->value_dim : layer->head_dim; }

int check_latents(const lr_cache_layer* layer, const lr_kernels* kernels) {
  if (layer->n_kv_heads != 1) return LR_BAD_ARGUMENT;
  if (!good_latent(layer->head_dim, layer->value_dim) || layer->codec < 0 || layer->codec >= LR_N_LATENTS)
    return LR_UNSUPPORTED;
  return has_room(&layer->blocks, kernels->latents[layer->codec]->bytes(layer->head_dim)) ? LR_OK : LR_BAD_ARGUMENT;
}

int check_layer(const lr_cache_layer* layer, const lr_kernels* kernels) {
  if (layer->group < 0 || layer->state_size < 0) return LR_BAD_ARGUMENT;
  if (layer->state_size) return has_room(&layer->blocks, 4 * (int64_t)layer->state_size) ? LR_OK : LR_BAD_ARGUMENT;
  if (layer->n_kv_heads < 1 || layer->n_heads > LR_MAX_HEADS || layer->n_heads < 1) return LR_BAD_ARGUMENT;
  if (layer->n_heads % layer->n_kv_heads || layer->value_dim < 0) return LR_BAD_ARGUMENT;
  if (layer->value_dim) return check_latents(layer, kernels);
  if (layer->head_dim < 8 || layer->head_dim > LR_MAX_HEAD_DIM || layer->head_dim % 8) return LR_UNSUPPORTED;
  if (layer->codec < 0 || layer->codec >= LR_N_KV || !kernels->kv[layer->codec]) return LR_UNSUPPORTED;
  const auto bytes = [&](int32_t codec) { return layer->n_kv_heads * kernels->kv[codec]->head_bytes(layer->head_dim); };
  if (!has_room(&layer->blocks, bytes(layer->codec))) return LR_BAD_ARGUMENT;
  return is_quantized(layer) && !has_room(&layer->ring, bytes(LR_KV_F16)) ? LR_BAD_ARGUMENT : LR_OK;
}

bool good_embed(const lr_embed* op) {
  return is_matrix(op->weight) && op->image_token < op->weight->n_rows && holds(op->out, op->weight->n_cols);
}

bool good_embed_mapped(const lr_embed_mapped* op) {
  if (op->image_token >= op->n_rows) return false;
  return op->rows && op->n_rows > 0 && lr_row_bytes(op->gguf_type, op->n_cols) > 0 && holds(op->out, op->n_cols);
}

bool good_norm(const lr_norm* op) {
  if (!op->x || op->size < 1 || op->x->width % op->size) return false;
  if (!op->weight || !op->x || op->x->width < 1 || !holds(op->x, op->x->width)) return false;
  return holds(op->out, op->x->width) && (!op->residual || holds(op->residual, op->x->width));
}

bool good_adapters(const lr_adapter* adapter, int32_t n, const lr_value* a) {
  if (n < 0 || (n && !adapter)) return false;
  for (int32_t i = 0; i < n; i++) {
    if (!multiplies(adapter[i].a, a) || adapter[i].a->layout != LR_LAYOUT_F16) return false;
    if (!adapter[i].b || !holds(adapter[i].t, adapter[i].a->n_rows)) return false;
  }
  return true;
}

bool is_gated(int32_t act) { return act >= LR_ACT_SILU_MUL && act <= LR_ACT_CLAMPED_SILU_MUL; }

// Weights that read codes have their columns in this order; others do not know it.
bool good_order(const lr_linear* op) {
  for (int32_t i = 0; i < op->n_weights; i++)
    if (!(lr_layout_activation_format(op->weight[i]->layout) & op->make_formats & ~LR_FORMAT_BF16)) return false;
  for (int32_t i = 0; i < op->a->width; i++)
    if (op->order[i] < 0 || op->order[i] >= op->a->width) return false;
  return true;
}

bool good_linear(const lr_linear* op) {
  if (op->n_weights < 1 || op->n_weights > LR_MAX_WEIGHTS) return false;
  if (op->act < LR_ACT_NONE || op->act >= LR_N_ACTS) return false;
  for (int32_t i = 0; i < op->n_weights; i++) {
    if (!multiplies(op->weight[i], op->a)) return false;
    const int32_t n_rows = op->weight[i]->n_rows;
    if (!good_adapters(op->adapter[i], op->n_adapters[i], op->a)) return false;
    if (!holds(op->out[op->act ? 0 : i], n_rows) || (op->residual && !holds(op->residual, n_rows))) return false;
  }
  if (op->order && !good_order(op)) return false;
  if (op->act == LR_ACT_NONE) return true;
  return op->n_weights == 1 + is_gated(op->act) && op->weight[0]->n_rows == op->weight[op->n_weights - 1]->n_rows;
}

bool good_logits(const lr_logits* op) {
  if (!multiplies(op->weight, op->a) || op->weight->n_rows > LR_MAX_VOCAB) return false;
  return op->rows && holds(op->gathered, op->weight->n_cols) && op->softcap >= 0.0f;
}

bool good_rope_append(const lr_rope_append* op, const lr_program* program) {
  if (op->layer < 0 || op->layer >= program->n_layers) return false;
  const lr_cache_layer* layer = &program->layer[op->layer];
  if (layer->value_dim) return false;  // it has latents
  const int64_t q = (int64_t)layer->n_heads * layer->head_dim, kv = (int64_t)layer->n_kv_heads * layer->head_dim;
  if (!holds(op->q, q) || !holds(op->out, q) || !op->k != !op->v) return false;
  if (op->k && (!holds(op->k, kv) || !holds(op->v, kv))) return false;
  if (op->out->f32 == op->q->f32) return false;  // a norm over the row would read heads that are done
  if (op->sink_out && (!holds(op->sink_out, q) || op->sink_out->f32 == op->q->f32)) return false;
  return op->qk_norm == LR_QK_NORM_NONE || (op->q_weight && (op->k_weight || !op->k));
}

bool good_attention(const lr_attention* op, const lr_program* program) {
  if (op->layer < 0 || op->layer >= program->n_layers || op->window < 0 || op->sink_window < 0) return false;
  if ((op->window && op->sink_window) || (op->sink_q && !op->sink_window)) return false;
  const lr_cache_layer* layer = &program->layer[op->layer];
  const int64_t q = (int64_t)layer->n_heads * layer->head_dim;
  if (op->sink_q && !holds(op->sink_q, q)) return false;
  const int64_t out = (int64_t)layer->n_heads * value_dim_of(layer);
  return holds(op->q, q) && holds(op->out, out) && isfinite(op->scale) && isfinite(op->softcap) && op->softcap >= 0.0f;
}

bool good_latent_append(const lr_latent_append* op, const lr_program* program) {
  if (op->layer < 0 || op->layer >= program->n_layers) return false;
  const lr_cache_layer* layer = &program->layer[op->layer];
  if (!layer->value_dim) return false;
  const int64_t rank = layer->value_dim, dims = layer->head_dim - rank, n_heads = layer->n_heads;
  if (!holds(op->q, n_heads * rank) || !holds(op->q_rope, n_heads * dims) || !holds(op->out, n_heads * layer->head_dim))
    return false;
  return holds(op->latent, rank) && holds(op->k_rope, dims);
}

// Matrices of heads begin at whole interleaves of rows.
bool good_head_linear(const lr_head_linear* op) {
  if (op->n_heads < 1 || op->n_heads > LR_MAX_HEADS || !multiplies(op->weight, op->a)) return false;
  const int32_t n_in = op->weight->n_cols, n_out = op->weight->n_rows / op->n_heads;
  if (op->weight->n_rows % (op->n_heads * 16)) return false;
  for (int32_t i = 0; op->order && i < n_in; i++)
    if (op->order[i] < 0 || op->order[i] >= n_in) return false;
  return holds(op->x, (int64_t)op->n_heads * n_in) && holds(op->out, (int64_t)op->n_heads * n_out);
}

bool good_routes(const lr_routes* routes) {
  if (!routes || !routes->expert || !routes->weight || !routes->place || !routes->first) return false;
  return routes->top_k > 0 && routes->top_k <= routes->n_experts && routes->n_experts <= LR_MAX_EXPERTS;
}

bool good_groups(const lr_route* op) {
  const int32_t n_experts = op->routes->n_experts, n_groups = op->n_groups;
  if (n_groups < 1 || n_experts % n_groups || op->n_groups_used < 1 || op->n_groups_used > n_groups) return false;
  if (op->group_rank < 1 || op->group_rank > 2 || (n_groups > 1 && op->group_rank > n_experts / n_groups)) return false;
  return op->routes->top_k <= n_experts / n_groups * op->n_groups_used;
}

bool good_route(const lr_route* op) {
  if (!good_routes(op->routes) || !holds(op->scores, op->routes->n_experts) || !op->a) return false;
  if (!isfinite(op->scale) || !good_groups(op)) return false;
  return holds(op->a, op->a->width) && holds(op->chosen, op->a->width) && op->chosen->stride == op->a->stride;
}

bool good_experts(const lr_experts* op) {
  if (!good_routes(op->routes) || op->act < LR_ACT_NONE || op->act >= LR_N_ACTS) return false;
  const bool gated = is_gated(op->act);
  if (gated != (op->weight[1] != nullptr)) return false;
  for (int32_t i = 0; i < 1 + gated; i++) {
    if (!multiplies(op->weight[i], op->a) || op->weight[i]->n_rows != op->weight[0]->n_rows) return false;
    if (op->weight[i]->n_rows % (op->routes->n_experts * 16)) return false;
  }
  return holds(op->out, op->weight[0]->n_rows / op->routes->n_experts);
}

bool good_combine(const lr_combine* op) {
  if (!good_routes(op->routes) || !op->out || !holds(op->out, op->out->width) || !isfinite(op->scale)) return false;
  if (op->shared && !holds(op->shared, op->out->width)) return false;
  if (op->shared_gate && (!op->shared || !holds(op->shared_gate, 1))) return false;
  return holds(op->y, op->out->width) && (!op->residual || holds(op->residual, op->out->width));
}

bool good_sigmoid_mul(const lr_sigmoid_mul* op) {
  return op->x && holds(op->x, op->x->width) && holds(op->gate, op->x->width) && holds(op->out, op->x->width);
}

bool good_gelu_mul(const lr_gelu_mul* op) {
  if (!op->gate || op->gate->width < 1 || op->first < 0) return false;
  const int32_t n = op->gate->width;
  return holds(op->gate, n) && holds(op->x, (int64_t)op->first + n) && holds(op->out, n);
}

bool good_scale(const lr_scaling* op) {
  return op->x && isfinite(op->factor) && holds(op->x, op->x->width) && holds(op->out, op->x->width);
}

bool good_layer_norm(const lr_layer_norm* op) {
  if (!op->x || op->x->width < 1 || !op->weight || !op->bias) return false;
  return holds(op->x, op->x->width) && holds(op->out, op->x->width);
}

bool good_self_attention(const lr_self_attention* op) {
  if (op->n_heads < 1 || op->n_heads > LR_MAX_HEADS || !op->q || op->q->width % op->n_heads) return false;
  const int32_t head_dim = op->q->width / op->n_heads;
  if (head_dim < 8 || head_dim > LR_MAX_HEAD_DIM || head_dim % 8 || !isfinite(op->scale)) return false;
  const int64_t width = op->q->width;
  return holds(op->q, width) && holds(op->k, width) && holds(op->v, width) && holds(op->out, width);
}

bool good_xielu(const lr_xielu* op) {
  if (!isfinite(op->positive) || !isfinite(op->negative) || !isfinite(op->linear) || !isfinite(op->limit)) return false;
  return op->x && holds(op->x, op->x->width) && holds(op->out, op->x->width);
}

bool good_add_image_rows(const lr_add_image_rows* op) {
  return op->x && op->place >= 0 && holds(op->x, op->x->width) && holds(op->out, op->x->width);
}

bool good_clamp(const lr_clamp* op) {
  return op->x && op->low <= op->high && holds(op->x, op->x->width) && holds(op->out, op->x->width);
}

// The layer has a state with room for `n` numbers from `at` on.
bool has_state(const lr_program* program, int32_t layer, int32_t at, int64_t n) {
  if (layer < 0 || layer >= program->n_layers || at < 0) return false;
  return n > 0 && at + n <= program->layer[layer].state_size;
}

bool good_short_conv(const lr_short_conv* op, const lr_program* program) {
  if (op->taps < 2 || op->taps > LR_MAX_TAPS || !op->weight || !op->x || op->x->width < 1) return false;
  const int32_t n_channels = op->x->width / (op->gated ? 3 : 1);
  if (op->gated && op->x->width != 3 * n_channels) return false;
  if (!holds(op->x, op->x->width) || !holds(op->out, n_channels) || op->out->f32 == op->x->f32) return false;
  return has_state(program, op->layer, op->state_at, (int64_t)(op->taps - 1) * n_channels);
}

bool good_gated_delta_rule(const lr_gated_delta_rule* op, const lr_program* program) {
  const int32_t n_keys = op->n_key_heads, n_values = op->n_value_heads;
  if (n_keys < 1 || n_values < n_keys || n_values % n_keys || n_values > LR_MAX_HEADS) return false;
  if (op->key_dim < 2 || op->key_dim > 1024 || op->key_dim % 2) return false;
  if (op->value_dim < 1 || op->value_dim > 1024 || op->value_dim % LR_DELTA_PANEL) return false;
  const int64_t width = (int64_t)n_values * op->value_dim, keys = (int64_t)n_keys * op->key_dim;
  if (!holds(op->qkv, 2 * keys + width) || !holds(op->z, width) || !holds(op->out, width)) return false;
  if (!holds(op->alpha, n_values) || !holds(op->beta, n_values) || op->out->f32 == op->qkv->f32) return false;
  if (!op->decay || !op->dt_bias || !op->norm) return false;
  return has_state(program, op->layer, op->state_at, width * op->key_dim);
}

bool good_selective_scan(const lr_selective_scan* op, const lr_program* program) {
  const int32_t n_heads = op->n_heads, n_groups = op->n_groups;
  if (n_groups < 1 || n_heads < n_groups || n_heads % n_groups || n_heads > LR_MAX_HEADS) return false;
  if (op->state_dim < 2 || op->state_dim > 1024 || op->state_dim % 2) return false;
  if (op->head_dim < 1 || op->head_dim > 1024 || op->head_dim % 16) return false;
  const int64_t width = (int64_t)n_heads * op->head_dim, keys = (int64_t)n_groups * op->state_dim;
  if (!holds(op->xbc, width + 2 * keys) || !holds(op->z, width) || !holds(op->out, width)) return false;
  if (!holds(op->dt, n_heads) || op->out->f32 == op->xbc->f32 || op->out->f32 == op->z->f32) return false;
  if (!op->decay || !op->dt_bias || !op->skip || !op->norm) return false;
  return has_state(program, op->layer, op->state_at, width * op->state_dim);
}

bool good_will_need(const lr_will_need* op) {
  if (op->routes && !good_routes(op->routes)) return false;
  for (const lr_matrix* weight : op->weight) {
    if (!weight) continue;
    if (!weight->data || weight->n_bytes < 1 || weight->n_rows < 1) return false;
    if (op->routes && weight->n_rows % (op->routes->n_experts * 16)) return false;
  }
  return true;
}

bool good_instruction(const lr_instruction* instruction, const lr_program* program) {
  switch (instruction->op) {
    case LR_OP_EMBED: return good_embed(&instruction->embed);
    case LR_OP_NORM: return good_norm(&instruction->norm);
    case LR_OP_LINEAR: return good_linear(&instruction->linear);
    case LR_OP_ROPE_APPEND: return good_rope_append(&instruction->rope_append, program);
    case LR_OP_ATTENTION: return good_attention(&instruction->attention, program);
    case LR_OP_LOGITS: return good_logits(&instruction->logits);
    case LR_OP_ROUTE: return good_route(&instruction->route);
    case LR_OP_EXPERTS: return good_experts(&instruction->experts);
    case LR_OP_COMBINE: return good_combine(&instruction->combine);
    case LR_OP_SIGMOID_MUL: return good_sigmoid_mul(&instruction->sigmoid_mul);
    case LR_OP_SHORT_CONV: return good_short_conv(&instruction->short_conv, program);
    case LR_OP_GATED_DELTA_RULE: return good_gated_delta_rule(&instruction->gated_delta_rule, program);
    case LR_OP_EMBED_MAPPED: return good_embed_mapped(&instruction->embed_mapped);
    case LR_OP_GELU_MUL: return good_gelu_mul(&instruction->gelu_mul);
    case LR_OP_WILL_NEED: return good_will_need(&instruction->will_need);
    case LR_OP_LAYER_NORM: return good_layer_norm(&instruction->layer_norm);
    case LR_OP_SELF_ATTENTION: return good_self_attention(&instruction->self_attention);
    case LR_OP_SCALE: return good_scale(&instruction->scale);
    case LR_OP_XIELU: return good_xielu(&instruction->xielu);
    case LR_OP_CLAMP: return good_clamp(&instruction->clamp);
    case LR_OP_HEAD_LINEAR: return good_head_linear(&instruction->head_linear);
    case LR_OP_LATENT_APPEND: return good_latent_append(&instruction->latent_append, program);
    case LR_OP_ADD_IMAGE_ROWS: return good_add_image_rows(&instruction->add_image_rows);
    default: return good_selective_scan(&instruction->selective_scan, program);
  }
}

}  // namespace

int check_program(const lr_program* program, const lr_kernels* kernels) {
  if (!program || program->n_instructions < 1 || !program->instruction) return LR_BAD_ARGUMENT;
  if (program->n_layers < 0 || (program->n_layers && !program->layer)) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < program->n_layers; i++)
    if (const int wrong = check_layer(&program->layer[i], kernels)) return wrong;
  for (int32_t i = 0; i < program->n_instructions; i++) {
    const lr_instruction* instruction = &program->instruction[i];
    if (instruction->op < 0 || instruction->op >= LR_N_OPS) return LR_BAD_ARGUMENT;
    if (!kernels->op[instruction->op]) return LR_UNSUPPORTED;
    if (!good_instruction(instruction, program)) return LR_BAD_ARGUMENT;
  }
  return LR_OK;
}

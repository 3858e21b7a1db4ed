#include "check.h"

#include <math.h>

namespace {

bool holds(const lr_value* value, int64_t width) { return value && value->f32 && value->width >= width && value->stride >= value->width; }

int check_layer(const lr_cache_layer* layer, const lr_kernels* kernels) {
  if (!layer->pool || layer->block_bytes < 1 || layer->layer_offset < 0 || layer->group < 0) return LR_BAD_ARGUMENT;
  if (layer->n_kv_heads < 1 || layer->n_heads > LR_MAX_HEADS || layer->n_heads < 1) return LR_BAD_ARGUMENT;
  if (layer->n_heads % layer->n_kv_heads) return LR_BAD_ARGUMENT;
  if (layer->head_dim < 8 || layer->head_dim > LR_MAX_HEAD_DIM || layer->head_dim % 8) return LR_UNSUPPORTED;
  if (layer->codec < 0 || layer->codec >= LR_N_KV || !kernels->kv[layer->codec]) return LR_UNSUPPORTED;
  const int64_t bytes = layer->n_kv_heads * kernels->kv[layer->codec]->head_bytes(layer->head_dim);
  return layer->layer_offset + bytes <= layer->block_bytes ? LR_OK : LR_BAD_ARGUMENT;
}

bool good_rope_append(const lr_rope_append* op, const lr_program* program) {
  if (op->layer < 0 || op->layer >= program->n_layers) return false;
  const lr_cache_layer* layer = &program->layer[op->layer];
  const int64_t q = (int64_t)layer->n_heads * layer->head_dim, kv = (int64_t)layer->n_kv_heads * layer->head_dim;
  if (!holds(op->q, q) || !holds(op->k, kv) || !holds(op->v, kv) || !holds(op->out, q)) return false;
  if (op->out->f32 == op->q->f32) return false;  // a norm over the row would read heads that are done
  return op->qk_norm == LR_QK_NORM_NONE || (op->q_weight && op->k_weight);
}

bool good_attention(const lr_attention* op, const lr_program* program) {
  if (op->layer < 0 || op->layer >= program->n_layers || op->window < 0) return false;
  const lr_cache_layer* layer = &program->layer[op->layer];
  const int64_t q = (int64_t)layer->n_heads * layer->head_dim;
  return holds(op->q, q) && holds(op->out, q) && isfinite(op->scale) && isfinite(op->softcap) && op->softcap >= 0.0f;
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
    if (instruction->op == LR_OP_ROPE_APPEND && !good_rope_append(&instruction->rope_append, program))
      return LR_BAD_ARGUMENT;
    if (instruction->op == LR_OP_ATTENTION && !good_attention(&instruction->attention, program))
      return LR_BAD_ARGUMENT;
  }
  return LR_OK;
}

int check_step(const lr_program* program, const lr_step* step, int32_t max_rows, lr_span* span) {
  if (!step || step->n_rows < 1 || step->n_rows > max_rows) return LR_BAD_ARGUMENT;
  if (!step->token || !step->position || !step->row_sequence || !step->sequence) return LR_BAD_ARGUMENT;
  if (step->n_sequences < 1 || step->n_sequences > max_rows) return LR_BAD_ARGUMENT;
  if (step->n_logits < 0 || step->n_logits > step->n_rows || (step->n_logits && !step->logits_row)) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < step->n_logits; i++)
    if (step->logits_row[i] < 0 || step->logits_row[i] >= step->n_rows) return LR_BAD_ARGUMENT;

  for (int32_t s = 0; s < step->n_sequences; s++) span[s] = {0, 0};
  for (int32_t row = 0; row < step->n_rows; row++) {
    const int32_t s = step->row_sequence[row], position = step->position[row];
    if (s < 0 || s >= step->n_sequences) return LR_BAD_ARGUMENT;
    if (position < 0 || position >= step->sequence[s].length) return LR_BAD_ARGUMENT;
    if (!span[s].n_rows) span[s].first_row = row;
    const bool next = span[s].first_row + span[s].n_rows == row;
    if (!next || (span[s].n_rows && step->position[row - 1] >= position)) return LR_BAD_ARGUMENT;
    span[s].n_rows++;
  }
  for (int32_t i = 0; i < program->n_layers; i++)
    for (int32_t s = 0; s < step->n_sequences; s++) {
      const lr_sequence* sequence = &step->sequence[s];
      const int32_t group = program->layer[i].group;
      if (!sequence->table || !sequence->first || !sequence->table[group]) return LR_BAD_ARGUMENT;
      if (sequence->first[group] < 0) return LR_BAD_ARGUMENT;
    }
  return LR_OK;
}

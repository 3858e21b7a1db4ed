#include "runtime/check.h"

namespace {

// Every token has a row in every embedding.
bool embeds(const lr_program* program, const lr_step* step) {
  for (int32_t i = 0; i < program->n_instructions; i++) {
    const lr_instruction* instruction = &program->instruction[i];
    const bool mapped = instruction->op == LR_OP_EMBED_MAPPED;
    if (instruction->op != LR_OP_EMBED && !mapped) continue;
    const int32_t n = mapped ? instruction->embed_mapped.n_rows : instruction->embed.weight->n_rows;
    for (int32_t row = 0; row < step->n_rows; row++)
      if (step->token[row] < 0 || step->token[row] >= n) return false;
  }
  return true;
}

// Rows of images are in the buffer, with as many additions as the program has places for.
bool has_images(const lr_program* program, const lr_step* step) {
  if (!step->buffer_row) return true;
  if (!step->buffer || step->n_buffer < 1) return false;
  for (int32_t row = 0; row < step->n_rows; row++)
    if (step->buffer_row[row] < -1 || step->buffer_row[row] >= step->n_buffer) return false;
  for (int32_t i = 0; i < program->n_instructions; i++) {
    const lr_instruction* instruction = &program->instruction[i];
    if (instruction->op != LR_OP_ADD_IMAGE_ROWS) continue;
    const int32_t place = instruction->add_image_rows.place;
    if (place >= step->n_added || !step->added || !step->added[place]) return false;
  }
  return true;
}

// A sequence has the tables of a layer, and they reach back to its oldest row.
bool has_blocks(const lr_cache_layer* layer, const lr_sequence* sequence, int32_t oldest) {
  const int32_t group = layer->group, number = oldest / LR_BLOCK_TOKENS;
  if (!sequence->table || !sequence->first || !sequence->table[group]) return false;
  if (sequence->first[group] < 0 || sequence->first[group] > number) return false;
  if (layer->state_size) return sequence->state;
  if (!is_quantized(layer)) return true;
  return sequence->ring && sequence->ring[group] && sequence->ring_first >= 0 && sequence->ring_first <= number;
}

// Rows see up to their own position or further, one no less far than the one before it, and nothing after the step.
bool reaches(const lr_step* step) {
  for (int32_t row = 0; row < step->n_rows && step->reach; row++) {
    const int32_t s = step->row_sequence[row], reach = step->reach[row];
    if (reach < step->position[row] || reach >= step->sequence[s].length) return false;
    if (row && step->row_sequence[row - 1] == s && step->reach[row - 1] > reach) return false;
  }
  return true;
}

// A state is that of all tokens before: rows leave none out, and the one after the last has its place.
bool keeps_states(const lr_program* program, const lr_step* step, const lr_span* span, int32_t s) {
  const lr_sequence* sequence = &step->sequence[s];
  const int32_t* position = step->position + span[s].first_row;
  const int32_t n_rows = span[s].n_rows, last = position[n_rows - 1];
  for (int32_t i = 0; i < program->n_layers; i++) {
    const lr_cache_layer* layer = &program->layer[i];
    if (!layer->state_size) continue;
    if (last - position[0] != n_rows - 1) return false;
    if (sequence->table[layer->group][last / LR_BLOCK_TOKENS - sequence->first[layer->group]] < 0) return false;
  }
  return true;
}

bool turns_sinks(const lr_program* program, const lr_step* step) {
  for (int32_t i = 0; i < program->n_instructions; i++) {
    const lr_instruction* instruction = &program->instruction[i];
    if (instruction->op == LR_OP_ROPE_APPEND && instruction->rope_append.sink_out && instruction->rope_append.rope >= 0)
      if (!step->sink_cos || !step->sink_sin) return false;
  }
  return true;
}

}  // namespace

int check_step(const lr_program* program, const lr_step* step, int32_t max_rows, lr_span* span) {
  if (!step || step->n_rows < 1 || step->n_rows > max_rows) return LR_BAD_ARGUMENT;
  if (!step->token || !step->position || !step->row_sequence || !step->sequence) return LR_BAD_ARGUMENT;
  if (step->n_sequences < 1 || step->n_sequences > max_rows) return LR_BAD_ARGUMENT;
  if (step->n_logits < 0 || step->n_logits > max_rows) return LR_BAD_ARGUMENT;
  if (step->n_logits && !step->logits_row) return LR_BAD_ARGUMENT;
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
  for (int32_t s = 0; s < step->n_sequences; s++)
    for (int32_t i = 0; i < program->n_layers && span[s].n_rows; i++) {
      const int32_t oldest = step->position[span[s].first_row];
      if (!has_blocks(&program->layer[i], &step->sequence[s], oldest)) return LR_BAD_ARGUMENT;
    }
  for (int32_t s = 0; s < step->n_sequences; s++)
    if (span[s].n_rows && !keeps_states(program, step, span, s)) return LR_BAD_ARGUMENT;
  const bool good = embeds(program, step) && has_images(program, step) && turns_sinks(program, step) && reaches(step);
  return good ? LR_OK : LR_BAD_ARGUMENT;
}

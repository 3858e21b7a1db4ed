// What a program and a step must be for the kernels to stay inside their memory. Blocks of a table are taken on trust.
#pragma once
#include "isa.h"

inline bool is_quantized(const lr_cache_layer* layer) { return layer->codec >= LR_KV_Q8; }

// Keys of a latent and what is turned beside it, as blocks hold them.
inline bool good_latent(int32_t key_dim, int32_t value_dim) {
  if (key_dim % 8 || key_dim > LR_MAX_KEY_DIM || value_dim < 16 || value_dim % 16) return false;
  return value_dim < key_dim && value_dim <= LR_MAX_HEAD_DIM;
}

// LR_OK, LR_BAD_ARGUMENT, or LR_UNSUPPORTED where `kernels` lacks an op or a codec.
int check_program(const lr_program* program, const lr_kernels* kernels);

// Also fills span[n_sequences].
int check_step(const lr_program* program, const lr_step* step, int32_t max_rows, lr_span* span);

// What a program and a step must be for the kernels to stay inside their memory. Blocks of a table are taken on trust.
#pragma once
#include "isa.h"

inline bool is_quantized(const lr_cache_layer* layer) { return layer->codec >= LR_KV_Q8; }

// LR_OK, LR_BAD_ARGUMENT, or LR_UNSUPPORTED where `kernels` lacks an op or a codec.
int check_program(const lr_program* program, const lr_kernels* kernels);

// Also fills span[n_sequences].
int check_step(const lr_program* program, const lr_step* step, int32_t max_rows, lr_span* span);

// What flash_block.inc computes, in plain C++: one query row over its keys, block by block, without a second pass over the
// scores (online softmax). Read it first; tests hold the fast ones to it, up to the rounding of sums and of e^x.
#pragma once
#include <math.h>
#include <stdint.h>

#include "program.h"

// `q` [head_dim] and `out` [value_dim]; keys and values [n_keys][stride] of one KV head, of which the row sees those from
// `first` on. Latents are both.
static inline void attend_one_row(const float* q, const float* keys, const float* values, int32_t stride, int32_t first,
                                  int32_t n_keys, int32_t head_dim, int32_t value_dim, float scale, float* out) {
  float max = -INFINITY, sum = 0.0f;
  for (int32_t d = 0; d < value_dim; d++) out[d] = 0.0f;
  for (int32_t block = first / LR_BLOCK_TOKENS * LR_BLOCK_TOKENS; block < n_keys; block += LR_BLOCK_TOKENS) {
    const int32_t begin = block < first ? first : block;
    const int32_t end = block + LR_BLOCK_TOKENS < n_keys ? block + LR_BLOCK_TOKENS : n_keys;
    float scores[LR_BLOCK_TOKENS] = {}, new_max = max;
    for (int32_t key = begin; key < end; key++) {
      for (int32_t d = 0; d < head_dim; d++) scores[key - block] += q[d] * keys[(int64_t)key * stride + d];
      scores[key - block] *= scale;
      new_max = fmaxf(new_max, scores[key - block]);
    }
    const float keep = expf(max - new_max);  // what earlier blocks count now
    sum *= keep;
    for (int32_t d = 0; d < value_dim; d++) out[d] *= keep;
    for (int32_t key = begin; key < end; key++) {
      const float p = expf(scores[key - block] - new_max);
      sum += p;
      for (int32_t d = 0; d < value_dim; d++) out[d] += p * values[(int64_t)key * stride + d];
    }
    max = new_max;
  }
  for (int32_t d = 0; d < value_dim; d++) out[d] /= sum;
}

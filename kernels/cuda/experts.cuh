// What kernels of a mixture's experts share. Those of a matrix lie one after the other, n_out rows each. blockIdx.y is a tile:
// an expert, or -1, and TILE_PAIRS pairs of a row and a choice that go there: those that are there, then -1 (mixture.cu).
// Pair p reads row p / pairs_a_row of x and writes row p of `out`: scale · sum + bias, of one matrix, or with a gate
// act(gate) · (…) of the second, as in linear.cuh.
#pragma once
#include "linear.cuh"

#define EXPERT_ARGUMENTS                                                                                             \
  const uint8_t *weights0, const float *bias0, const float *scales0, float scale0, const uint8_t *weights1,           \
      const float *bias1, const float *scales1, float scale1, float *out, int n_out, int n_experts,                   \
      const int *tile_experts, const int *tile_pairs, int pairs_a_row

struct lr_expert_rows {
  int row_tile;  // of the matrix of all experts
  int first;     // the row of the expert that it begins with; negative: it begins with rows of the one before
};
// Row tile `index` of those that have rows of an expert.
LR_INLINE lr_expert_rows lr_find_rows(int expert, int n_out, int index) {
  const int row_tile = expert * n_out / 16 + index;
  return {row_tile, row_tile * 16 - expert * n_out};
}
LR_INLINE lr_linear lr_of_expert(const uint8_t* weights, const float* bias, const float* scales, float scale, float* out,
                                 int n_out, int expert) {
  return {weights, bias ? bias + (int64_t)expert * n_out : nullptr, out, scales ? __ldg(scales + expert) : scale, n_out};
}

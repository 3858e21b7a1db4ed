// Experts of a mixture for tiles of up to N_X pairs, to the bits of experts.metal, which says what a tile is. A gate is a
// launch of its own. A group has 64 rows of a matrix.
#include "many_sums.metal"

LR_THREADS(128)
kernel void experts_many(device const uchar* weights [[buffer(0)]], device const float* bias [[buffer(1)]],
                         device const float* scales [[buffer(2)]], constant float& scale [[buffer(3)]],
                         device float* out [[buffer(4)]], constant int& n_out [[buffer(5)]],
                         constant int& n_experts [[buffer(6)]], device const int* tile_experts [[buffer(7)]],
                         device const int* tile_pairs [[buffer(8)]], constant int& pairs_a_row [[buffer(9)]],
                         device const float* x [[buffer(10)]], constant int& n_cols [[buffer(11)]],
                         constant uint& given [[buffer(12)]], uint3 group [[threadgroup_position_in_grid]],
                         uint at [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
  const int n_tiles = (n_cols + 63) / 64, expert = tile_experts[group.y];
  if (expert < 0) return;
  // The first row tile, of all experts; the row of this one that it begins with may be negative.
  const int first_tile = expert * n_out / 16 + int(group.x) * (ROWS / 16), first_row = first_tile * 16 - expert * n_out;
  if (first_row >= n_out) return;
  const int row_tile = min(first_tile + int(simdgroup), (n_experts * n_out + 15) / 16 - 1);
  const lr_row_tile from = lr_find_row_tile(weights, n_experts * n_out, n_tiles, row_tile, lane);
  device const int* const pairs = tile_pairs + long(group.y) * N_X;
  int rows[N_X / 16];
#pragma unroll
  for (int i = 0; i < N_X / 16; i++) {
    const int pair = pairs[int(at) / 8 + 16 * i];
    rows[i] = pair < 0 ? -1 : pair / pairs_a_row;
  }

  threadgroup float staged_w[ROWS * STRIDE];
  threadgroup float staged_x[N_X * STRIDE];
  lr_sum_many(staged_w, staged_x, from, x, n_cols, rows, at, simdgroup, lane);
  const lr_linear of = {weights, LR_GIVEN(1) ? bias + long(expert) * n_out : bias, out,
                        LR_GIVEN(2) ? scales[expert] : scale, n_out, LR_GIVEN(1)};
  for (int i = int(at); i < N_X * ROWS; i += 128) {
    const int pair = pairs[i / ROWS], n = first_row + i % ROWS;
    if (pair >= 0 && n >= 0 && n < n_out) lr_store(of, pair, n, lr_biased(of, n, staged_w[i]), 0.f, x, false, 1.f);
  }
}

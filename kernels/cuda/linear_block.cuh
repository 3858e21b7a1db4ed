// 16 rows of a matrix, which a block multiplies with up to 8 rows of x.
#pragma once
#include "linear_few.cuh"

// Totals as lr_total_few has them. `all`: a gate and an up with SIDES 2; `of`: the matrix of the block otherwise.
LR_INLINE void lr_block_totals(float (&total)[SIDES], const lr_linear (&all)[3], const lr_linear& of, int row_tile,
                               const uint4* x, const int4* x_groups, int n_tiles, int n_x, int padded_x) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, segment = threadIdx.x / 32 % N_SEGMENTS;
  const int side = threadIdx.x / (32 * N_SEGMENTS);
  const lr_row_tile at = lr_find_row_tile(side ? all[1].weights : of.weights, of.n_out, n_tiles, row_tile, lane);
  const uint4* const my_x = x + (int64_t)g * n_tiles * 4 + t;
  const uint8_t* const my_groups = (const uint8_t*)(x_groups + t);
  const int half = padded_x * 8;  // bytes of the groups of 32 columns

  float sum[4] = {0.f, 0.f, 0.f, 0.f};
  lr_sum_few(sum, at, n_tiles, segment, [&](Step& step, int tile) {
    if (g < n_x) step.x = __ldcg(my_x + (int64_t)tile * 4);
#pragma unroll
    for (int k = 0; k < 2; k++) step.groups[k] = __ldcg((const int4*)(my_groups + (int64_t)(2 * tile + k) * half));
  });
  lr_total_few(total, sum, side, segment);
}

// All that a block of a linear does.
LR_INLINE void lr_linear_block(const lr_linear (&all)[3], const lr_linear& of, int row_tile, const uint4* x,
                               const int4* x_groups, const float* residual, float out_scale, int n_tiles, int n_x,
                               int padded_x) {
  float total[SIDES] = {};
  lr_block_totals(total, all, of, row_tile, x, x_groups, n_tiles, n_x, padded_x);
  const int m = threadIdx.x / 16, n = row_tile * 16 + threadIdx.x % 16;
  if (m >= n_x || n >= of.n_out) return;
  lr_store_totals(of, all[1], m, n, total, residual, out_scale);
}

// A linear for 1 to 8 rows of x.
#include "linear_few.cuh"

extern "C" __global__ void __launch_bounds__(256 * SIDES, 2 / SIDES)
linear(LINEAR_MATRICES, const uint4* __restrict__ x, const int4* __restrict__ x_groups, const float* residual,
       float out_scale, int n_tiles, int n_x, int padded_x) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, segment = threadIdx.x / 32 % N_SEGMENTS;
  const int side = threadIdx.x / (32 * N_SEGMENTS);
  const lr_linear all[3] = LINEAR_LIST;
  int row_tile;
  const lr_linear of = lr_linear_of_block(all, 16, row_tile);
  const lr_row_tile at = lr_find_row_tile(side ? weights1 : of.weights, of.n_out, n_tiles, row_tile, lane);
  const uint4* const my_x = x + (int64_t)g * n_tiles * 4 + t;
  const uint8_t* const my_groups = (const uint8_t*)(x_groups + t);
  const int half = padded_x * 8;  // bytes of the groups of 32 columns

  float sum[4] = {0.f, 0.f, 0.f, 0.f}, total[SIDES] = {};
  lr_sum_few(sum, at, n_tiles, segment, [&](Step& step, int tile) {
    if (g < n_x) step.x = __ldcg(my_x + (int64_t)tile * 4);
#pragma unroll
    for (int k = 0; k < 2; k++) step.groups[k] = __ldcg((const int4*)(my_groups + (int64_t)(2 * tile + k) * half));
  });
  lr_total_few(total, sum, side, segment);
  const int m = threadIdx.x / 16, n = row_tile * 16 + threadIdx.x % 16;
  if (m >= n_x || n >= of.n_out) return;
#if SIDES == 2
  const float gate = lr_biased(all[0], n, total[0]);
  lr_store(of, m, n, lr_biased(all[1], n, total[1]), &gate, residual, out_scale);
#else
  lr_store(of, m, n, lr_biased(of, n, total[0]), nullptr, residual, out_scale);
#endif
}

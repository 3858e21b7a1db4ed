// The linear of linear.cu for many rows of x. A gate is a launch of its own.
#include "linear_many.cuh"

extern "C" __global__ void __launch_bounds__(32 * N_WARPS, 2)
linear_many(LINEAR_MATRICES, const uint4* __restrict__ x, const int4* __restrict__ x_groups, const float* residual,
            float out_scale, int n_tiles, int n_x, int padded_x) {
  LR_DYNAMIC_SHARED(Stage, stages);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const lr_linear all[3] = LINEAR_LIST;
  int block;
  const lr_linear of = lr_linear_of_block(all, 16 * N_WARPS, block);
  const int first_x = blockIdx.y * N_X, row_tile = block * N_WARPS + warp;
  const bool mine = row_tile * 16 < of.n_out;
  const lr_row_tile at = lr_find_row_tile(of.weights, of.n_out, n_tiles, mine ? row_tile : 0, lane);

  const auto fetch_x = [&](Stage& to, int tile) {  // rows beyond the last: any, never stored
    for (int i = threadIdx.x; i < N_X * 4; i += 32 * N_WARPS) {
      const int row = min(first_x + i / 4, n_x - 1);
      lr_copy_async(to.codes + i / 4 * STRIDE + i % 4 * 16, x + ((int64_t)row * n_tiles + tile) * 4 + i % 4);
    }
    for (int i = threadIdx.x; i < N_X; i += 32 * N_WARPS) {
      const int pair = min(first_x / 2 + i % (N_X / 2), padded_x / 2 - 1);
      lr_copy_async(&to.groups[i / (N_X / 2)][i % (N_X / 2)],
                    x_groups + (int64_t)(2 * tile + i / (N_X / 2)) * (padded_x / 2) + pair);
    }
  };
  float total[N_X / 8][4] = {};
  lr_sum_many(total, stages, at, n_tiles, N_X / 8, fetch_x,
              [&](const Stage& stage, int n, int k) { return stage.groups[k][4 * n + t]; });
#pragma unroll
  for (int i = 0; i < N_X / 2; i++) {
    const int n = row_tile * 16 + g + 8 * (i % 4 / 2), m = first_x + 8 * (i / 4) + 2 * t + i % 2;
    if (n < of.n_out && m < n_x) lr_store(of, m, n, lr_biased(of, n, total[i / 4][i % 4]), nullptr, residual, out_scale);
  }
}

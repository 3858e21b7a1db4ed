// The linear of linear.cu for many rows of x, to the same bits: weights go from memory straight into the registers of the
// tensor cores, x through shared memory, two stages ahead of its use. A gate is a launch of its own.
#include "dot.cuh"
#include "linear.cuh"
#ifndef N_X
#define N_X 64  // rows of x a block takes, a multiple of 16
#endif
#define N_WARPS 4  // each has a row tile of the weights
#define STAGES 3
#define STRIDE 80  // bytes of 64 codes in shared memory: 20 words keep the eight rows of a fragment in different banks

struct Stage {
  __align__(16) uint8_t codes[N_X * STRIDE];
  __align__(16) int4 groups[2][N_X / 2];  // of two rows each
};

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
  const int length = (n_tiles + N_SEGMENTS - 1) / N_SEGMENTS;

  const auto fetch_x = [&](int tile) {  // rows beyond the last: any, never stored
    if (tile < n_tiles) {
      Stage& to = stages[tile % STAGES];
      for (int i = threadIdx.x; i < N_X * 4; i += 32 * N_WARPS) {
        const int row = min(first_x + i / 4, n_x - 1);
        lr_copy_async(to.codes + i / 4 * STRIDE + i % 4 * 16, x + ((int64_t)row * n_tiles + tile) * 4 + i % 4);
      }
      for (int i = threadIdx.x; i < N_X; i += 32 * N_WARPS) {
        const int pair = min(first_x / 2 + i % (N_X / 2), padded_x / 2 - 1);
        lr_copy_async(&to.groups[i / (N_X / 2)][i % (N_X / 2)],
                      x_groups + (int64_t)(2 * tile + i / (N_X / 2)) * (padded_x / 2) + pair);
      }
    }
    lr_copy_commit();
  };
  lr_tile next;
  lr_load_tile(next, at, 0);
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++) fetch_x(i);

  float sum[N_X / 8][4] = {}, total[N_X / 8][4] = {};
  for (int tile = 0, left = length; tile < n_tiles; tile++) {
    lr_copy_wait<STAGES - 2>();
    __syncthreads();  // the stage is there for all, and nobody reads the one that is filled next
    fetch_x(tile + STAGES - 1);
    lr_weights w;
    lr_unpack(w, next);
    if (tile + 1 < n_tiles) lr_load_tile(next, at, tile + 1);
    const Stage& stage = stages[tile % STAGES];
#pragma unroll
    for (int n = 0; n < N_X / 8; n++) {
      const int4 groups[2] = {stage.groups[0][4 * n + t], stage.groups[1][4 * n + t]};
      lr_multiply(sum[n], w, *(const uint4*)(stage.codes + (8 * n + g) * STRIDE + 16 * t), groups);
    }
    if (--left && tile + 1 < n_tiles) continue;
    left = length;  // a segment ends
#pragma unroll
    for (int n = 0; n < N_X / 8; n++)
#pragma unroll
      for (int j = 0; j < 4; j++) total[n][j] += sum[n][j], sum[n][j] = 0.f;
  }
  lr_copy_wait<0>();
#pragma unroll
  for (int i = 0; i < N_X / 2; i++) {
    const int n = row_tile * 16 + g + 8 * (i % 4 / 2), m = first_x + 8 * (i / 4) + 2 * t + i % 2;
    if (n < of.n_out && m < n_x) lr_store(of, m, n, lr_biased(of, n, total[i / 4][i % 4]), nullptr, residual, out_scale);
  }
}

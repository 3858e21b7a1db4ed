// Experts for tiles of up to N_X pairs, to the bits of experts.cu. A gate is a launch of its own.
#define GATHERED 1
#include "experts.cuh"
#include "linear_many.cuh"

extern "C" __global__ void __launch_bounds__(32 * N_WARPS, 2)
experts_many(EXPERT_ARGUMENTS, const uint4* __restrict__ x, const int4* __restrict__ x_groups, int n_tiles, int padded_x) {
  LR_DYNAMIC_SHARED(Stage, stages);
  __shared__ int pairs[N_X], x_rows[N_X];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int expert = __ldcg(tile_experts + blockIdx.y);
  if (expert < 0) return;
  const lr_expert_rows rows = lr_find_rows(expert, n_out, blockIdx.x * N_WARPS + warp);
  const int row_tile = rows.first < n_out ? rows.row_tile : 0;
  const lr_row_tile at = lr_find_row_tile(weights0, n_experts * n_out, n_tiles, row_tile, lane);
  for (int m = threadIdx.x; m < N_X; m += 32 * N_WARPS) {
    const int* const of_tile = tile_pairs + (int64_t)blockIdx.y * N_X;
    pairs[m] = __ldcg(of_tile + m), x_rows[m] = max(pairs[m], __ldcg(of_tile)) / pairs_a_row;
  }
  __syncthreads();
  int n_eights = 0;
  uint32_t odd = 0;  // bits 2n and 2n + 1: of the rows 8n + 2t and 8n + 2t + 1 of the tile
  for (int n = 0; n < N_X / 8; n++) {
    if (pairs[8 * n] >= 0) n_eights = n + 1;
    for (int j = 0; j < 2; j++) odd |= (uint32_t)(x_rows[8 * n + 2 * t + j] % 2) << (2 * n + j);
  }

  const auto fetch_x = [&](Stage& to, int tile) {
    for (int i = threadIdx.x; i < n_eights * 32; i += 32 * N_WARPS)
      lr_copy_async(to.codes + i / 4 * STRIDE + i % 4 * 16, x + ((int64_t)x_rows[i / 4] * n_tiles + tile) * 4 + i % 4);
    for (int i = threadIdx.x; i < n_eights * 16; i += 32 * N_WARPS) {
      const int k = i % 2, m = i / 2;
      lr_copy_async(&to.groups[k][m], x_groups + (int64_t)(2 * tile + k) * (padded_x / 2) + x_rows[m] / 2);
    }
  };
  const auto groups_of = [&](const Stage& stage, int n, int k) {
    const int2* const neighbours = (const int2*)&stage.groups[k][8 * n + 2 * t];
    const int2 low = neighbours[odd >> 2 * n & 1], high = neighbours[2 + (odd >> (2 * n + 1) & 1)];
    return make_int4(low.x, low.y, high.x, high.y);
  };
  float total[N_X / 8][4] = {};
  lr_sum_many(total, stages, at, n_tiles, n_eights, fetch_x, groups_of);
  const lr_linear of = lr_of_expert(weights0, bias0, scales0, scale0, out, n_out, expert);
#pragma unroll
  for (int i = 0; i < N_X / 2; i++) {
    const int n = rows.first + g + 8 * (i % 4 / 2), pair = pairs[8 * (i / 4) + 2 * t + i % 2];
    if (pair >= 0 && n >= 0 && n < n_out) lr_store(of, pair, n, lr_biased(of, n, total[i / 4][i % 4]), nullptr, nullptr, 1.f);
  }
}

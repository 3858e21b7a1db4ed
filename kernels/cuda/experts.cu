// Experts for tiles of up to 8 pairs, to the bits of linear.cu.
#include "experts.cuh"
#include "linear_few.cuh"
#define TILE_PAIRS 8

extern "C" __global__ void __launch_bounds__(256 * SIDES, 2 / SIDES)
experts(EXPERT_ARGUMENTS, const uint4* __restrict__ x, const int2* __restrict__ x_groups, int n_tiles, int padded_x) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, segment = threadIdx.x / 32 % N_SEGMENTS;
  const int side = threadIdx.x / (32 * N_SEGMENTS), expert = __ldcg(tile_experts + blockIdx.y);
  const int* const pairs = tile_pairs + (int64_t)blockIdx.y * TILE_PAIRS;
  const lr_expert_rows rows = lr_find_rows(expert, n_out, blockIdx.x);
  if (expert < 0 || rows.first >= n_out) return;
  const lr_row_tile at = lr_find_row_tile(side ? weights1 : weights0, n_experts * n_out, n_tiles, rows.row_tile, lane);
  const auto row_of = [&](int m) { return max(__ldcg(pairs + m), __ldcg(pairs)) / pairs_a_row; };
  const bool there = __ldcg(pairs + g) >= 0;
  const uint4* const my_x = x + (int64_t)row_of(g) * n_tiles * 4 + t;
  const int2 *const groups0 = x_groups + row_of(2 * t), *const groups1 = x_groups + row_of(2 * t + 1);

  float sum[4] = {0.f, 0.f, 0.f, 0.f}, total[SIDES] = {};
  lr_sum_few(sum, at, n_tiles, segment, [&](Step& step, int tile) {
    if (there) step.x = __ldcg(my_x + (int64_t)tile * 4);
#pragma unroll
    for (int k = 0; k < 2; k++) {
      const int64_t skipped = (int64_t)(2 * tile + k) * padded_x;
      const int2 low = __ldcg(groups0 + skipped), high = __ldcg(groups1 + skipped);
      step.groups[k] = make_int4(low.x, low.y, high.x, high.y);
    }
  });
  lr_total_few(total, sum, side, segment);
  const int m = threadIdx.x / 16, n = rows.first + threadIdx.x % 16, pair = m < TILE_PAIRS ? __ldcg(pairs + m) : -1;
  if (pair < 0 || n < 0 || n >= n_out) return;
  const lr_linear of = lr_of_expert(weights0, bias0, scales0, scale0, out, n_out, expert);
  const lr_linear up = SIDES == 2 ? lr_of_expert(weights1, bias1, scales1, scale1, out, n_out, expert) : of;
  lr_store_totals(of, up, pair, n, total, nullptr, 1.f);
}

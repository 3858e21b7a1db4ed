// Experts whose weights stay floats, for tiles of up to 8 pairs, to the bits of linear_float.cu.
#include "experts.cuh"
#include "linear_float.cuh"

extern "C" __global__ void __launch_bounds__(256, 2) experts_float(EXPERT_ARGUMENTS, const float* __restrict__ x, int n_cols) {
  const int expert = __ldcg(tile_experts + blockIdx.y);
  const int* const pairs = tile_pairs + (int64_t)blockIdx.y * N_X;
  const lr_expert_rows rows = lr_find_rows(expert, n_out, blockIdx.x);
  if (expert < 0 || rows.first >= n_out) return;
  const float* x_rows[N_X];
  int n_here = 0;
#pragma unroll
  for (int m = 0; m < N_X; m++) {
    const int pair = __ldcg(pairs + m);
    x_rows[m] = x + (int64_t)(max(pair, 0) / pairs_a_row) * n_cols;
    n_here += pair >= 0;
  }
  const float total =
      lr_sum_floats(weights0, rows.row_tile, n_cols, n_here, [&](int m) { return x_rows[m]; });
  const int m = threadIdx.x / 16, n = rows.first + threadIdx.x % 16;
  if (m >= n_here || n < 0 || n >= n_out) return;
  const lr_linear of = lr_of_expert(weights0, bias0, scales0, scale0, out, n_out, expert);
  lr_store(of, __ldcg(pairs + m), n, lr_biased(of, n, total), nullptr, nullptr, 1.f);
}

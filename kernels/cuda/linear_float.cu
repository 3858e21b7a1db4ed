// A linear with weights that stay floats. gridDim.y: eights of the rows of x.
#include "linear_float.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
linear_float(LINEAR_MATRICES, const float* __restrict__ x, const float* residual, float out_scale, int n_cols, int n_x) {
  const lr_linear all[3] = LINEAR_LIST;
  int row_tile;
  const lr_linear of = lr_linear_of_block(all, 16, row_tile);
  const int first_x = blockIdx.y * N_X, n_here = min(N_X, n_x - first_x);
  const float total = lr_sum_floats(of.weights, row_tile, n_cols, n_here,
                                    [&](int m) { return x + (int64_t)(first_x + m) * n_cols; });
  const int m = threadIdx.x / 16, n = row_tile * 16 + threadIdx.x % 16;
  if (m < n_here && n < of.n_out) lr_store(of, first_x + m, n, lr_biased(of, n, total), nullptr, residual, out_scale);
}

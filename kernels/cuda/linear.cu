// A linear for 1 to 8 rows of x.
#include "linear_block.cuh"

extern "C" __global__ void __launch_bounds__(256 * SIDES, 2 / SIDES)
linear(LINEAR_MATRICES, const uint4* __restrict__ x, const int4* __restrict__ x_groups, const float* residual,
       float out_scale, int n_tiles, int n_x, int padded_x) {
  const lr_linear all[3] = LINEAR_LIST;
  int row_tile;
  const lr_linear of = lr_linear_of_block(all, 16, row_tile);
  lr_linear_block(all, of, row_tile, x, x_groups, residual, out_scale, n_tiles, n_x, padded_x);
}

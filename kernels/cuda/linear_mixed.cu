// The linear of linear.cu for matrices of two layouts, to its bits: values are often kept in more bits than queries and
// keys. The macros of the second layout end in _2; blocks from `first_blocks` on have matrices of it.
#include "linear.cuh"
namespace first {
#include "linear_block.cuh"
}
#undef LOW_BITS
#undef HIGH_BITS
#undef SIGNED_CODES
#undef SCALE
#undef GROUP
#undef TABLE
#define LOW_BITS LOW_BITS_2
#define HIGH_BITS HIGH_BITS_2
#define SIGNED_CODES SIGNED_CODES_2
#define SCALE SCALE_2
#define GROUP GROUP_2
#define TABLE TABLE_2
namespace second {
#include "linear_block.cuh"  // again
}

extern "C" __global__ void __launch_bounds__(256, 2)
linear_mixed(LINEAR_MATRICES, const uint4* __restrict__ x, const int4* __restrict__ x_groups, const float* residual,
             float out_scale, int n_tiles, int n_x, int padded_x, int first_blocks) {
  const lr_linear all[3] = LINEAR_LIST;
  int row_tile;
  const lr_linear of = lr_linear_of_block(all, 16, row_tile);
  if ((int)blockIdx.x < first_blocks)
    first::lr_linear_block(all, of, row_tile, x, x_groups, residual, out_scale, n_tiles, n_x, padded_x);
  else
    second::lr_linear_block(all, of, row_tile, x, x_groups, residual, out_scale, n_tiles, n_x, padded_x);
}

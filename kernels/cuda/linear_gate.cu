// A gate beside an up for 1 to 8 rows of x, and the result quantised for the linear after it: to the bits of linear.cu and
// of `quantize` in norm.cu. A block has the 32 columns of a group, as two row tiles of both matrices one after the other.
#include "linear_block.cuh"
#include "q8.cuh"

extern "C" __global__ void __launch_bounds__(512, 1)
linear_gate(LINEAR_MATRICES, const uint4* __restrict__ x, const int4* __restrict__ x_groups, int n_tiles, int n_x,
            int padded_x, uint8_t* codes, int2* groups, int stride, int padded_rows) {
  __shared__ float gated[8][32];
  const lr_linear all[3] = LINEAR_LIST;
  for (int half = 0; half < 2; half++) {
    const int row_tile = 2 * blockIdx.x + half, m = threadIdx.x / 16, n = row_tile * 16 + threadIdx.x % 16;
    float total[SIDES] = {};
    if (row_tile * 16 < n_out0) lr_block_totals(total, all, all[0], row_tile, x, x_groups, n_tiles, n_x, padded_x);
    if (m < 8) {
      const bool there = m < n_x && n < n_out0;
      const float y = there ? lr_activated(lr_biased(all[0], n, total[0]), lr_biased(all[1], n, total[1])) : 0.f;
      if (there) out0[(int64_t)m * n_out0 + n] = y;
      gated[m][16 * half + threadIdx.x % 16] = y;
    }
    __syncthreads();  // all is there, and nobody reads the sums of segments any more
  }
  const int row = threadIdx.x / 8, column = 4 * (threadIdx.x % 8);
  if (row >= 8) return;  // whole warps: lanes quantise together
  float y[4];
#pragma unroll
  for (int j = 0; j < 4; j++) y[j] = gated[row][column + j];
  lr_store_q8({codes, groups, row < n_x ? stride : 0, padded_rows}, row, 32 * blockIdx.x + column, y);
}

// A quantised matrix as bf16, row by row, for libraries that multiply those. A warp has a tile.
#include "layouts.cuh"

extern "C" __global__ void __launch_bounds__(256)
dequantize(const uint8_t* __restrict__ weights, uint16_t* __restrict__ out, int n_rows, int n_cols) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, n_tiles = (n_cols + 63) / 64;
  const int tile = blockIdx.x * 8 + threadIdx.x / 32, row_tile = blockIdx.y;
  if (tile >= n_tiles) return;
  lr_tile loaded;
  lr_load_tile(loaded, lr_find_row_tile(weights, n_rows, n_tiles, row_tile, lane), tile);
  lr_weights w;
  lr_unpack(w, loaded);
#pragma unroll
  for (int n = 0; n < 8; n++) {
    const int row = row_tile * 16 + g + n % 2 * 8, column = tile * 64 + n / 2 * 16 + t * 4;
    if (row >= n_rows || column >= n_cols) continue;  // columns are whole groups of 32
    *(uint2*)(out + (int64_t)row * n_cols + column) = make_uint2(lr_pack_bf16x2(lr_number(w, n, 0), lr_number(w, n, 1)),
                                                                lr_pack_bf16x2(lr_number(w, n, 2), lr_number(w, n, 3)));
  }
}

// Rows of a matrix by id, times a scale. blockIdx.y is the row of out; a thread has four columns.
#include "device.cuh"
#ifdef FLOAT_BITS
#include "floats.cuh"
#else
#include "layouts.cuh"
#endif

extern "C" __global__ void __launch_bounds__(256)
embed(const uint8_t* __restrict__ weights, const int* __restrict__ ids, float scale, float* __restrict__ out, int n_rows, int n_cols) {
  const int id = ids[blockIdx.y], four = blockIdx.x * 256 + threadIdx.x, n_tiles = (n_cols + 63) / 64;
  if (four * 4 >= n_cols) return;
  float numbers[4];
#ifdef FLOAT_BITS
  float all[PIECE];
  lr_floats(all, __ldg((const uint4*)weights + lr_piece_at(id / 16, n_tiles, four * 4 / PIECE, id % 16)));
#pragma unroll
  for (int j = 0; j < 4; j++) numbers[j] = PIECE == 8 && four % 2 ? all[PIECE - 4 + j] : all[j];
#else
  lr_tile loaded;
  lr_load_tile(loaded, lr_row_tile(weights, n_rows, n_tiles, id / 16), four / 16, id % 8 * 4 + four % 4);
  lr_weights w;
  lr_unpack(w, loaded);
#pragma unroll
  for (int n = 0; n < 8; n++)
    if (n == four % 16 / 4 * 2 + id % 16 / 8)
      for (int j = 0; j < 4; j++) numbers[j] = lr_number(w, n, j);
#endif
  for (int j = 0; j < 4; j++)
    if (four * 4 + j < n_cols) out[(int64_t)blockIdx.y * n_cols + four * 4 + j] = numbers[j] * scale;
}

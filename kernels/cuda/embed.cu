// Rows of a matrix by id, times a scale. blockIdx.y is the row of out; a thread has 16 columns, of codes those of a lane.
#include "device.cuh"
#ifdef FLOAT_BITS
#include "floats.cuh"
#else
#include "layouts.cuh"
#endif

extern "C" __global__ void __launch_bounds__(64)
embed(const uint8_t* __restrict__ weights, const int* __restrict__ ids, float scale, float* __restrict__ out, int n_rows, int n_cols) {
  const int id = ids[blockIdx.y], place = blockIdx.x * 64 + threadIdx.x, n_tiles = (n_cols + 63) / 64;
  if (place >= n_tiles * 4) return;
  float numbers[16];
#ifdef FLOAT_BITS
#pragma unroll
  for (int i = 0; i < 16; i += PIECE) {
    float piece[PIECE];
    lr_floats(piece, __ldg((const uint4*)weights + lr_piece_at(id / 16, n_tiles, (place * 16 + i) / PIECE, id % 16)));
#pragma unroll
    for (int j = 0; j < PIECE; j++) numbers[i + j] = piece[j];
  }
  const int first = place * 16, run = 4;
#else
  lr_tile loaded;
  lr_load_tile(loaded, lr_find_row_tile(weights, n_rows, n_tiles, id / 16, id % 8 * 4 + place % 4), place / 4);
  lr_weights w;
  lr_unpack(w, loaded);
#pragma unroll
  for (int i = 0; i < 16; i++)
    numbers[i] = id % 16 < 8 ? lr_number(w, i / 4 * 2, i % 4) : lr_number(w, i / 4 * 2 + 1, i % 4);
  const int first = place / 4 * 64 + place % 4 * 4, run = 16;
#endif
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int column = first + i / 4 * run + i % 4;
    if (column < n_cols) out[(int64_t)blockIdx.y * n_cols + column] = numbers[i] * scale;
  }
}

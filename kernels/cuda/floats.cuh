// Weights that stay floats: FLOAT_BITS 16 (IS_BF16 or fp16) or 32. Tiles of 16 rows × 64 columns; in a tile 16 bytes of row 0,
// of row 1 … of row 15, then the columns after them (localrun/backends/gpu/float_tiles.py).
#pragma once
#include "device.cuh"
#define PIECE (128 / FLOAT_BITS)  // columns in 16 bytes
#define PIECES (64 / PIECE)       // of a tile

// The piece of a row tile: where it starts, in units of 16 bytes.
LR_INLINE int64_t lr_piece_at(int row_tile, int n_tiles, int piece, int row) {
  return ((int64_t)row_tile * n_tiles * PIECES + piece) * 16 + row;
}
LR_INLINE void lr_floats(float (&to)[PIECE], const uint4& from) {
  const uint32_t words[4] = {from.x, from.y, from.z, from.w};
#pragma unroll
  for (int i = 0; i < PIECE; i++) {
#if FLOAT_BITS == 32
    to[i] = __uint_as_float(words[i]);
#elif IS_BF16
    to[i] = __uint_as_float(i % 2 ? words[i / 2] & 0xffff0000u : words[i / 2] << 16);
#else
    to[i] = i % 2 ? lr_high_half(words[i / 2]) : lr_low_half(words[i / 2]);
#endif
  }
}

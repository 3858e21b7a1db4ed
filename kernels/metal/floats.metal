// Weights that stay floats: FLOAT_BITS 16 (IS_BF16 or fp16) or 32. Tiles of 16 rows x 64 columns; in a tile 16 bytes of row
// 0, of row 1 ... of row 15, then the columns after them (localrun/backends/gpu/float_tiles.py). To kernels they look as
// layouts.metal makes codes look; a lane loads numbers when it needs them, 8 or 16 bytes at a time.
#pragma once
#include "device.metal"
#define PIECE (128 / FLOAT_BITS)  // columns in 16 bytes

struct lr_row_tile {  // a lane's columns 4t to 4t + 3 of row g
  device const uchar* first;
};
struct lr_tile {
  device const uchar* first;
};

LR_INLINE lr_row_tile lr_find_row_tile(device const uchar* weights, int n_rows, int n_tiles, int row_tile, int lane) {
  const int column = lane % 4 * 4;
  return {weights + long(row_tile) * n_tiles * (128 * FLOAT_BITS) + (column / PIECE * 16 + lane / 4) * 16 +
          column % PIECE * (FLOAT_BITS / 8)};
}
LR_INLINE void lr_load_tile(thread lr_tile& w, thread const lr_row_tile& at, int tile) {
  w.first = at.first + long(tile) * (128 * FLOAT_BITS);
}

// The four numbers of run i and row g + 8h.
LR_INLINE void lr_numbers(thread float* to, thread const lr_tile& w, int i, int h) {
  device const uchar* const from = w.first + (16 / PIECE * i * 16 + 8 * h) * 16;
#if FLOAT_BITS == 32
  const float4 v = *(device const float4*)from;
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
#else
  const uint2 v = *(device const uint2*)from;
#if IS_BF16
  to[0] = as_type<float>(v.x << 16), to[1] = as_type<float>(v.x & 0xffff0000u);
  to[2] = as_type<float>(v.y << 16), to[3] = as_type<float>(v.y & 0xffff0000u);
#else
  to[0] = lr_low_half(v.x), to[1] = lr_high_half(v.x), to[2] = lr_low_half(v.y), to[3] = lr_high_half(v.y);
#endif
#endif
}

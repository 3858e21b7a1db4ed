// Rows of a matrix by id, times a scale. group.y is the row of out; a thread has the 16 columns that a lane has of a tile.
#include "weights.metal"

LR_THREADS(64)
kernel void embed(device const uchar* weights [[buffer(0)]], device const int* ids [[buffer(1)]],
                  constant float& scale [[buffer(2)]], device float* out [[buffer(3)]], constant int& n_rows [[buffer(4)]],
                  constant int& n_cols [[buffer(5)]], uint3 group [[threadgroup_position_in_grid]],
                  uint at [[thread_index_in_threadgroup]]) {
  const int id = ids[group.y], place = int(group.x) * 64 + int(at), n_tiles = (n_cols + 63) / 64;
  if (place >= n_tiles * 4) return;
  const lr_row_tile from = lr_find_row_tile(weights, n_rows, n_tiles, id / 16, id % 8 * 4 + place % 4);
  lr_tile w;
  lr_load_tile(w, from, place / 4);
  device float* const row = out + long(group.y) * n_cols;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float numbers[4];
    if (id % 16 < 8) lr_numbers(numbers, w, i, 0);
    else lr_numbers(numbers, w, i, 1);
    const int column = place / 4 * 64 + i * 16 + place % 4 * 4;
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (column + j < n_cols) row[column + j] = numbers[j] * scale;
  }
}

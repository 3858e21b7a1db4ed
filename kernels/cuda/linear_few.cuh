// Sums for 1 to 8 rows of x in one pass over the weights, which are the 16-row operand of the tensor cores. A block has a row
// tile, and each of its warps a segment of the columns: the unit of exactness is the sum of a segment.
#pragma once
#include "dot.cuh"
#include "linear.cuh"
// Tiles a warp has under way: as many as 128 registers hold.
#define DEPTH (GROUP == 16 || HAS_MINIMA || LOW_BITS == 8 ? 2 : 3)

struct Step {
  lr_tile weights;
  uint4 x;
  int4 groups[2];
};

// sum[2h + m]: row g + 8h of the weights, row 2t + m of x. `fetch_x(step, tile)` asks for what this lane multiplies a tile
// with; before it nothing of x is needed.
template <class FetchX>
LR_INLINE void lr_sum_few(float (&sum)[4], const lr_row_tile& at, int n_tiles, int segment, const FetchX& fetch_x) {
  const int length = (n_tiles + N_SEGMENTS - 1) / N_SEGMENTS, first = segment * length;
  const int end = min(first + length, n_tiles);
  Step steps[DEPTH];
#pragma unroll
  for (int i = 0; i < DEPTH; i++)
    if (first + i < end) lr_load_tile(steps[i].weights, at, first + i);
#pragma unroll
  for (int i = 0; i < DEPTH; i++) {
    steps[i].x = make_uint4(0, 0, 0, 0);  // a lane whose row is not there reads nothing
    if (first + i < end) fetch_x(steps[i], first + i);
  }
  for (int tile = first; tile < end; tile += DEPTH) {
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
      if (tile + i >= end) break;
      lr_weights w;
      lr_unpack(w, steps[i].weights);
      lr_multiply(sum, w, steps[i].x, steps[i].groups);
      if (tile + i + DEPTH < end) {
        lr_load_tile(steps[i].weights, at, tile + i + DEPTH);
        fetch_x(steps[i], tile + i + DEPTH);
      }
    }
  }
}

// Totals of row `row` and row m of x, threadIdx.x = 16m + row of the first 128, from the sums of all warps.
LR_INLINE void lr_total_few(float (&total)[SIDES], const float (&sum)[4], int side, int segment) {
  __shared__ float partial[SIDES][N_SEGMENTS][16][9];
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, row = threadIdx.x % 16, m = threadIdx.x / 16;
#pragma unroll
  for (int j = 0; j < 4; j++) partial[side][segment][g + 8 * (j / 2)][2 * t + j % 2] = sum[j];
  __syncthreads();
  if (m >= 8) return;
#pragma unroll
  for (int s = 0; s < SIDES; s++)
    for (int i = 0; i < N_SEGMENTS; i++) total[s] += partial[s][i][row][m];
}

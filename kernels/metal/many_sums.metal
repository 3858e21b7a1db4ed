// Sums for many rows of x, to the bits of linear.metal. A group of four simdgroups has 64 rows of weights and N_X, 16 or 32,
// rows of x: it decodes half a tile of weights once into threadgroup memory, beside the x of these columns, and multiplies
// them from there.
//
// The columns of a half are staged chain by chain: 8t + 4i + j is column 16i + 4t + j, so that the eight numbers of a chain
// are neighbours. MATRIX 0: a lane has chain t of 8 rows of weights (N_X 16: of 4) and 8 rows of x. MATRIX 1: a simdgroup
// has 32 (or 16) rows of weights and 16 rows of x as 8 x 8 matrices, and sums of all four chains; that gives the same bits
// where the product of matrices is a chain of fma in ascending order, which the self-test finds out.
#pragma once
#include "matrices.metal"
#include "numbers.metal"
#include "weights.metal"
#ifndef MATRIX
#define MATRIX 0
#endif
#define ROWS 64     // of weights that a group has
#define STRIDE 34   // floats from row to row of what is staged: two more than columns, lest all rows start in one bank
#define HALF 32     // columns that are staged

struct lr_place {  // of a simdgroup in the outputs of its group
  int n, m;
};

#if MATRIX
#define N_MATRICES (N_X / 8)  // of 8 rows of weights that a simdgroup has, for each of its two of x

LR_INLINE lr_place lr_place_of(uint simdgroup) { return {int(simdgroup) / (N_X / 16) * 8 * N_MATRICES, int(simdgroup) % (N_X / 16) * 16}; }

struct lr_sums {
  simdgroup_float8x8 chains[4][2][N_MATRICES], total[2][N_MATRICES];
};
LR_INLINE void lr_start(thread lr_sums& sums) {
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int b = 0; b < N_MATRICES; b++) sums.total[a][b] = simdgroup_float8x8(0.f);
}
LR_INLINE void lr_start_segment(thread lr_sums& sums) {
#pragma unroll
  for (int t = 0; t < 4; t++)
#pragma unroll
    for (int a = 0; a < 2; a++)
#pragma unroll
      for (int b = 0; b < N_MATRICES; b++) sums.chains[t][a][b] = simdgroup_float8x8(0.f);
}
LR_INLINE void lr_multiply(thread lr_sums& sums, threadgroup const float* w, threadgroup const float* x, uint lane) {
#pragma unroll
  for (int t = 0; t < 4; t++) {
    simdgroup_float8x8 of_x[2], of_w;
#pragma unroll
    for (int a = 0; a < 2; a++) simdgroup_load(of_x[a], x + 8 * a * STRIDE + 8 * t, STRIDE);
#pragma unroll
    for (int b = 0; b < N_MATRICES; b++) {
      simdgroup_load(of_w, w + 8 * b * STRIDE + 8 * t, STRIDE, 0, true);
#pragma unroll
      for (int a = 0; a < 2; a++) simdgroup_multiply_accumulate(sums.chains[t][a][b], of_x[a], of_w, sums.chains[t][a][b]);
    }
  }
}
LR_INLINE void lr_end_segment(thread lr_sums& sums, uint lane) {
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int b = 0; b < N_MATRICES; b++)
#pragma unroll
      for (int e = 0; e < 2; e++)  // of 64 numbers two are a lane's, in all matrices the same ones
        sums.total[a][b].thread_elements()[e] +=
            (sums.chains[0][a][b].thread_elements()[e] + sums.chains[1][a][b].thread_elements()[e]) +
            (sums.chains[2][a][b].thread_elements()[e] + sums.chains[3][a][b].thread_elements()[e]);
}
// Row m of x and row n of weights are number [m][n] of y.
LR_INLINE void lr_keep(threadgroup float* y, thread const lr_sums& sums, uint lane) {
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int b = 0; b < N_MATRICES; b++) simdgroup_store(sums.total[a][b], y + 8 * a * ROWS + 8 * b, ROWS);
}
#else
#define N_ROWS (N_X / 4)  // of weights that a lane has: g, g + 8, ...

LR_INLINE lr_place lr_place_of(uint simdgroup) { return {int(simdgroup) / (N_X / 8) * 8 * N_ROWS, int(simdgroup) % (N_X / 8) * 8}; }

struct lr_sums {
  float chain[N_ROWS][8], total[N_ROWS][2];  // a lane keeps the totals of rows t and t + 4 of x
};
LR_INLINE void lr_start(thread lr_sums& sums) {
#pragma unroll
  for (int r = 0; r < N_ROWS; r++) sums.total[r][0] = 0.f, sums.total[r][1] = 0.f;
}
LR_INLINE void lr_start_segment(thread lr_sums& sums) {
#pragma unroll
  for (int r = 0; r < N_ROWS; r++)
#pragma unroll
    for (int m = 0; m < 8; m++) sums.chain[r][m] = 0.f;
}
LR_INLINE void lr_multiply(thread lr_sums& sums, threadgroup const float* w, threadgroup const float* x, uint lane) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int k = 0; k < 8; k += 2) {
    float2 of_x[8];
#pragma unroll
    for (int m = 0; m < 8; m++) of_x[m] = *(threadgroup const float2*)(x + m * STRIDE + 8 * t + k);
#pragma unroll
    for (int r = 0; r < N_ROWS; r++) {
      const float2 of_w = *(threadgroup const float2*)(w + (g + 8 * r) * STRIDE + 8 * t + k);
#pragma unroll
      for (int m = 0; m < 8; m++) sums.chain[r][m] = fma(of_w.y, of_x[m].y, fma(of_w.x, of_x[m].x, sums.chain[r][m]));
    }
  }
}
// Lanes of four give each other what they do not keep, first to their neighbour, then to the one after that.
LR_INLINE void lr_end_segment(thread lr_sums& sums, uint lane) {
  const bool odd = lane % 2 != 0, high = lane % 4 >= 2;
#pragma unroll
  for (int r = 0; r < N_ROWS; r++)
#pragma unroll
    for (int q = 0; q < 2; q++) {
      float pair[2];
#pragma unroll
      for (int p = 0; p < 2; p++) {
        const float even_m = sums.chain[r][4 * q + 2 * p], odd_m = sums.chain[r][4 * q + 2 * p + 1];
        pair[p] = (odd ? odd_m : even_m) + simd_shuffle_xor(odd ? even_m : odd_m, 1);
      }
      sums.total[r][q] += (high ? pair[1] : pair[0]) + simd_shuffle_xor(high ? pair[0] : pair[1], 2);
    }
}
// Row m of x and row n of weights are number [m][n] of y.
LR_INLINE void lr_keep(threadgroup float* y, thread const lr_sums& sums, uint lane) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int r = 0; r < N_ROWS; r++)
#pragma unroll
    for (int q = 0; q < 2; q++) y[(t + 4 * q) * ROWS + g + 8 * r] = sums.total[r][q];
}
#endif

// Leave number [m][n] of N_X rows of x and 64 of weights in staged_w [N_X][ROWS], once nobody reads weights there. rows: of x
// that this thread stages, the numbers at / 8 and at / 8 + 16 of the tile; -1: none.
LR_INLINE void lr_sum_many(threadgroup float* staged_w, threadgroup float* staged_x, lr_row_tile from, device const float* x,
                           int n_cols, thread const int* rows, uint at, uint simdgroup, uint lane) {
  const int g = lane / 4, t = lane % 4, part = at % 8, n_tiles = (n_cols + 63) / 64;  // 4 * part is 16i + 4t
  const lr_place place = lr_place_of(simdgroup);
  threadgroup float* const my_w = staged_w + (int(simdgroup) * 16 + g) * STRIDE + 8 * t;
  threadgroup float* const my_x = staged_x + int(at) / 8 * STRIDE + part % 4 * 8 + part / 4 * 4;
  lr_sums sums;
  lr_start(sums);
  const int length = (n_tiles + N_SEGMENTS - 1) / N_SEGMENTS;
  for (int segment = 0; segment < N_SEGMENTS && segment * length < n_tiles; segment++) {
    lr_start_segment(sums);
    const int end = min((segment + 1) * length, n_tiles);
    for (int tile = segment * length; tile < end; tile++) {
      lr_tile w;
      lr_load_tile(w, from, tile);
#pragma unroll
      for (int half_tile = 0; half_tile < 2; half_tile++) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // nobody reads the last half any more
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
          for (int h = 0; h < 2; h++) {
            float numbers[4];
            lr_numbers(numbers, w, 2 * half_tile + i, h);
#pragma unroll
            for (int j = 0; j < 4; j++) my_w[8 * h * STRIDE + 4 * i + j] = numbers[j];
          }
#pragma unroll
        for (int i = 0; i < N_X / 16; i++) {
          float v[4] = {0.f, 0.f, 0.f, 0.f};
          if (rows[i] >= 0) lr_four(v, x + long(rows[i]) * n_cols, tile * 64 + half_tile * HALF + 4 * part, n_cols);
#pragma unroll
          for (int j = 0; j < 4; j++) my_x[16 * i * STRIDE + j] = v[j];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        lr_multiply(sums, staged_w + place.n * STRIDE, staged_x + place.m * STRIDE, lane);
      }
    }
    lr_end_segment(sums, lane);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  lr_keep(staged_w + place.m * ROWS + place.n, sums, lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

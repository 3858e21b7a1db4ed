// A linear for 9 rows of x and more. A group of four simdgroups has 64 rows of weights and N_X, 16 or 32, rows of x: it
// decodes half a tile of weights once into threadgroup memory, beside the x of these columns, and multiplies them from there.
//
// The columns of a half are staged chain by chain: 8t + 4i + j is column 16i + 4t + j, so that the eight numbers of a chain
// are neighbours. MATRIX 0: a lane has chain t of 8 rows of weights (N_X 16: of 4) and 8 rows of x. MATRIX 1: a simdgroup
// has 32 (or 16) rows of weights and 16 rows of x as 8 x 8 matrices, and sums of all four chains; that gives the same bits
// where the product of matrices is a chain of fma in ascending order, which the self-test finds out.
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

LR_THREADS(128)
kernel void linear_many(LINEAR_MATRICES, device const float* x [[buffer(15)]], device const float* residual [[buffer(16)]],
                        constant float& out_scale [[buffer(17)]], constant int& n_cols [[buffer(18)]],
                        constant int& n_x [[buffer(19)]], constant uint& given [[buffer(20)]],
                        uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const int g = lane / 4, t = lane % 4, n_tiles = (n_cols + 63) / 64, first_x = int(group.x) * N_X;
  int block = int(group.y);
  const lr_linear of = lr_linear_of_group(LINEAR_MATRIX(0), LINEAR_MATRIX(1), LINEAR_MATRIX(2), ROWS, block);
  // Row tiles beyond the last are the last again, and nothing is stored of them.
  const int row_tile = min(block * (ROWS / 16) + int(simdgroup), (of.n_out + 15) / 16 - 1);
  const lr_row_tile from = lr_find_row_tile(of.weights, of.n_out, n_tiles, row_tile, lane);
  const lr_place place = lr_place_of(simdgroup);

  threadgroup float staged_w[ROWS * STRIDE];
  threadgroup float staged_x[N_X * STRIDE];
  threadgroup float* const my_w = staged_w + (int(simdgroup) * 16 + g) * STRIDE + 8 * t;
  lr_sums sums;
  lr_start(sums);
  const int length = (n_tiles + N_SEGMENTS - 1) / N_SEGMENTS;
  for (int segment = 0; segment < N_SEGMENTS; segment++) {
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
        for (int four = int(at); four < N_X * HALF / 4; four += 128) {
          const int m = four / 8, part = four % 8;  // 4 * part is 16i + 4t
          float v[4] = {0.f, 0.f, 0.f, 0.f};
          if (first_x + m < n_x)
            lr_four(v, x + long(first_x + m) * n_cols, tile * 64 + half_tile * HALF + 4 * part, n_cols);
#pragma unroll
          for (int j = 0; j < 4; j++) staged_x[m * STRIDE + part % 4 * 8 + part / 4 * 4 + j] = v[j];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        lr_multiply(sums, staged_w + place.n * STRIDE, staged_x + place.m * STRIDE, lane);
      }
    }
    lr_end_segment(sums, lane);
  }

  threadgroup_barrier(mem_flags::mem_threadgroup);
  lr_keep(staged_w + place.m * ROWS + place.n, sums, lane);  // in the place of weights
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = int(at); i < N_X * ROWS; i += 128) {
    const int m = first_x + i / ROWS, n = block * ROWS + i % ROWS;
    if (m < n_x && n < of.n_out)
      lr_store(of, m, n, lr_biased(of, n, staged_w[i]), 0.f, residual, LR_GIVEN(RESIDUAL), out_scale);
  }
}

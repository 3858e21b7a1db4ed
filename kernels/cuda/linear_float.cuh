// Sums with weights that stay floats, in fused multiply-adds of floats. A block has a row tile and eight rows of x; each half
// of its warps has one of 16 segments of the columns, each lane a row of weights. A number is the sum of its segments in
// ascending order, each of them in ascending order: the same for any number of rows.
#pragma once
#include "floats.cuh"
#include "linear.cuh"
#define N_X 8
#define FLOAT_SEGMENTS 16
#define AT_ONCE 4  // pieces a lane asks for together

// Four columns of a row of x; zeros beyond the last, where weights are zeros too.
LR_INLINE float4 lr_four(const float* __restrict__ row, int column, int n_cols) {
  if (n_cols % 4 == 0) return column < n_cols ? __ldcg((const float4*)(row + column)) : make_float4(0.f, 0.f, 0.f, 0.f);
  float v[4];
#pragma unroll
  for (int j = 0; j < 4; j++) v[j] = column + j < n_cols ? __ldcg(row + column + j) : 0.f;
  return make_float4(v[0], v[1], v[2], v[3]);
}

// The sum of row threadIdx.x % 16 of a row tile and row threadIdx.x / 16 of x, of which the first `n_here` are there;
// `row_of(m)` says where.
template <class RowOf>
LR_INLINE float lr_sum_floats(const uint8_t* weights, int row_tile, int n_cols, int n_here, const RowOf& row_of) {
  const int row = threadIdx.x % 16, segment = threadIdx.x / 16, n_tiles = (n_cols + 63) / 64;
  const int length = (n_tiles + FLOAT_SEGMENTS - 1) / FLOAT_SEGMENTS * PIECES;
  const int first = segment * length, end = min(first + length, n_tiles * PIECES);
  float sum[N_X] = {};
  for (int piece = first; piece < end; piece += AT_ONCE) {
    uint4 loaded[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
      loaded[i] = __ldg((const uint4*)weights + lr_piece_at(row_tile, n_tiles, piece + i, row));
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      float w[PIECE];
      lr_floats(w, loaded[i]);
#pragma unroll
      for (int m = 0; m < N_X; m++) {
        if (m >= n_here) break;
#pragma unroll
        for (int four = 0; four < PIECE; four += 4) {
          const float4 v = lr_four(row_of(m), (piece + i) * PIECE + four, n_cols);
          sum[m] = __fmaf_rn(w[four], v.x, sum[m]);
          sum[m] = __fmaf_rn(w[four + 1], v.y, sum[m]);
          sum[m] = __fmaf_rn(w[four + 2], v.z, sum[m]);
          sum[m] = __fmaf_rn(w[four + 3], v.w, sum[m]);
        }
      }
    }
  }
  __shared__ float partial[FLOAT_SEGMENTS][N_X][16];
#pragma unroll
  for (int m = 0; m < N_X; m++) partial[segment][m][row] = sum[m];
  __syncthreads();
  float total = 0.f;
  for (int i = 0; i < FLOAT_SEGMENTS; i++) total += partial[i][segment % N_X][row];
  return total;
}

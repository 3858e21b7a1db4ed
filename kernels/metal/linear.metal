// A linear for 1 to 8 rows of x in one pass over the weights. A group has two row tiles, with SIDES 2 one of the gate and one
// of the up; each of its eight simdgroups has a segment of the columns, each lane four rows of weights and chain t of them.
// N_X, 1, 2, 4 or 8, is no less than the rows of x: it decides about registers, not about bits. With NORM x is read through
// an RMS norm, to the bits of norm.metal.
#include "matrices.metal"
#include "numbers.metal"
#include "weights.metal"
#ifndef NORM
#define NORM 0
#endif
#define ROWS (SIDES == 2 ? 16 : 32)  // of a matrix that a group has

LR_THREADS(256)
kernel void linear(LINEAR_MATRICES, device const float* x [[buffer(15)]], device const float* residual [[buffer(16)]],
                   constant float& out_scale [[buffer(17)]], constant int& n_cols [[buffer(18)]],
                   constant int& n_x [[buffer(19)]], device const float* norm_weight [[buffer(20)]],
                   constant float& eps [[buffer(21)]], constant uint& given [[buffer(22)]],
                   uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                   uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const int t = lane % 4, n_tiles = (n_cols + 63) / 64;
  int block = int(group.x);
  const lr_linear of = lr_linear_of_group(LINEAR_MATRIX(0), LINEAR_MATRIX(1), LINEAR_MATRIX(2), ROWS, block);
  // A second tile that is not there is the first again, and nothing is stored of it.
  const int first_tile = SIDES == 2 ? block : 2 * block;
  const int second_tile = SIDES == 2 ? block : min(first_tile + 1, (of.n_out + 15) / 16 - 1);
  lr_row_tile tiles[2];
  tiles[0] = lr_find_row_tile(of.weights, of.n_out, n_tiles, first_tile, lane);
  tiles[1] = lr_find_row_tile(SIDES == 2 ? weights1 : of.weights, of.n_out, n_tiles, second_tile, lane);

#if NORM
  threadgroup float squares[N_SEGMENTS * N_X];
  for (int m = 0; m < n_x; m++) {
    const float sum = lr_simd_sum(lr_squares(x + long(m) * n_cols, n_cols, at));
    if (lane == 0) squares[simdgroup * N_X + m] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float scale[N_X];
#pragma unroll
  for (int m = 0; m < N_X; m++) {
    float total = 0.f;
    for (int i = 0; i < N_SEGMENTS && m < n_x; i++) total += squares[i * N_X + m];
    scale[m] = lr_norm_scale(total, n_cols, eps);
  }
#endif

  const int length = (n_tiles + N_SEGMENTS - 1) / N_SEGMENTS, first = int(simdgroup) * length;
  const int end = min(first + length, n_tiles);
  float sum[4][N_X];  // rows g and g + 8 of the first tile, then of the second
#pragma unroll
  for (int r = 0; r < 4; r++)
#pragma unroll
    for (int m = 0; m < N_X; m++) sum[r][m] = 0.f;
  for (int tile = first; tile < end; tile++) {
    lr_tile w[2];
    lr_load_tile(w[0], tiles[0], tile);
    lr_load_tile(w[1], tiles[1], tile);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int column = tile * 64 + i * 16 + t * 4;
      float numbers[4][4];
#pragma unroll
      for (int r = 0; r < 4; r++) lr_numbers(numbers[r], w[r / 2], i, r % 2);
#if NORM
      float gains[4];
      lr_four(gains, norm_weight, column, n_cols);
#endif
#pragma unroll
      for (int m = 0; m < N_X; m++) {
        if (m >= n_x) break;
        float v[4];
        lr_four(v, x + long(m) * n_cols, column, n_cols);
#if NORM
#pragma unroll
        for (int j = 0; j < 4; j++) v[j] = v[j] * scale[m] * gains[j];
#endif
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
          for (int r = 0; r < 4; r++) sum[r][m] = fma(numbers[r][j], v[j], sum[r][m]);
      }
    }
  }

  threadgroup float partial[N_SEGMENTS * N_X * 32];
#pragma unroll
  for (int m = 0; m < N_X; m++)
#pragma unroll
    for (int r = 0; r < 4; r++) {
      float chains = sum[r][m] + simd_shuffle_xor(sum[r][m], 1);
      chains += simd_shuffle_xor(chains, 2);
      if (t == r) partial[(simdgroup * N_X + m) * 32 + r * 8 + lane / 4] = chains;
    }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int row = at % ROWS, m = at / ROWS, n = block * ROWS + row;
  if (m >= n_x || n >= of.n_out) return;
  float total[SIDES];
#pragma unroll
  for (int side = 0; side < SIDES; side++) {
    total[side] = 0.f;
    for (int i = 0; i < N_SEGMENTS; i++) total[side] += partial[(i * N_X + m) * 32 + 16 * side + row];
  }
#if SIDES == 2
  const float gate = lr_biased(of, n, total[0]), up = lr_biased(LINEAR_MATRIX(1), n, total[1]);
  lr_store(LINEAR_MATRIX(1), m, n, up, gate, residual, LR_GIVEN(RESIDUAL), out_scale);
#else
  lr_store(of, m, n, lr_biased(of, n, total[0]), 0.f, residual, LR_GIVEN(RESIDUAL), out_scale);
#endif
}

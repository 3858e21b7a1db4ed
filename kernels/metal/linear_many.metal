// A linear for 9 rows of x and more.
#include "many_sums.metal"

LR_THREADS(128)
kernel void linear_many(LINEAR_MATRICES, device const float* x [[buffer(15)]], device const float* residual [[buffer(16)]],
                        constant float& out_scale [[buffer(17)]], constant int& n_cols [[buffer(18)]],
                        constant int& n_x [[buffer(19)]], constant uint& given [[buffer(20)]],
                        uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const int n_tiles = (n_cols + 63) / 64, first_x = int(group.x) * N_X;
  int block = int(group.y);
  const lr_linear of = lr_linear_of_group(LINEAR_MATRIX(0), LINEAR_MATRIX(1), LINEAR_MATRIX(2), ROWS, block);
  // Row tiles beyond the last are the last again, and nothing is stored of them.
  const int row_tile = min(block * (ROWS / 16) + int(simdgroup), (of.n_out + 15) / 16 - 1);
  const lr_row_tile from = lr_find_row_tile(of.weights, of.n_out, n_tiles, row_tile, lane);
  int rows[N_X / 16];
#pragma unroll
  for (int i = 0; i < N_X / 16; i++) {
    const int m = first_x + int(at) / 8 + 16 * i;
    rows[i] = m < n_x ? m : -1;
  }

  threadgroup float staged_w[ROWS * STRIDE];
  threadgroup float staged_x[N_X * STRIDE];
  lr_sum_many(staged_w, staged_x, from, x, n_cols, rows, at, simdgroup, lane);
  for (int i = int(at); i < N_X * ROWS; i += 128) {
    const int m = first_x + i / ROWS, n = block * ROWS + i % ROWS;
    if (m < n_x && n < of.n_out)
      lr_store(of, m, n, lr_biased(of, n, staged_w[i]), 0.f, residual, LR_GIVEN(RESIDUAL), out_scale);
  }
}

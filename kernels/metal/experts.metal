// Experts of a mixture, for tiles of up to 8 pairs, to the bits of linear.metal. The experts of a matrix lie one after the
// other, n_out rows each. group.y is a tile: an expert, or -1, and 8 pairs of a row and a choice that go there: those that are
// there, then -1 (mixture.metal). Pair p reads row p / pairs_a_row of x and writes row p of `out`: scale * sum + bias, of one
// matrix, or with a gate act(gate) * (...) of the second. A group has two row tiles, or one of each matrix.
#include "matrices.metal"
#include "numbers.metal"
#include "weights.metal"
#define N_X 8
#define ROWS (SIDES == 2 ? 16 : 32)  // of a matrix that a group has
#define EXPERT(i, first)                                                                                          \
  lr_linear {                                                                                                     \
    weights##i, LR_GIVEN(first + 1) ? bias##i + long(expert) * n_out : bias##i, out,                              \
        LR_GIVEN(first + 2) ? scales##i[expert] : scale##i, n_out, LR_GIVEN(first + 1)                            \
  }

LR_THREADS(256)
kernel void experts(device const uchar* weights0 [[buffer(0)]], device const float* bias0 [[buffer(1)]],
                    device const float* scales0 [[buffer(2)]], constant float& scale0 [[buffer(3)]],
                    device const uchar* weights1 [[buffer(4)]], device const float* bias1 [[buffer(5)]],
                    device const float* scales1 [[buffer(6)]], constant float& scale1 [[buffer(7)]],
                    device float* out [[buffer(8)]], constant int& n_out [[buffer(9)]],
                    constant int& n_experts [[buffer(10)]], device const int* tile_experts [[buffer(11)]],
                    device const int* tile_pairs [[buffer(12)]], constant int& pairs_a_row [[buffer(13)]],
                    device const float* x [[buffer(14)]], constant int& n_cols [[buffer(15)]],
                    constant uint& given [[buffer(16)]], uint3 group [[threadgroup_position_in_grid]],
                    uint at [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]]) {
  const int t = lane % 4, n_tiles = (n_cols + 63) / 64, expert = tile_experts[group.y];
  if (expert < 0) return;
  // The first row tile, of all experts; the row of this one that it begins with may be negative.
  const int first_tile = expert * n_out / 16 + int(group.x) * (ROWS / 16), first_row = first_tile * 16 - expert * n_out;
  const int second_tile = SIDES == 2 ? first_tile : min(first_tile + 1, (n_experts * n_out + 15) / 16 - 1);
  if (first_row >= n_out) return;
  lr_row_tile tiles[2];
  tiles[0] = lr_find_row_tile(weights0, n_experts * n_out, n_tiles, first_tile, lane);
  tiles[1] = lr_find_row_tile(SIDES == 2 ? weights1 : weights0, n_experts * n_out, n_tiles, second_tile, lane);
  device const int* const pairs = tile_pairs + long(group.y) * N_X;
  int rows[N_X], n_x = 0;
#pragma unroll
  for (int m = 0; m < N_X; m++) {
    rows[m] = max(pairs[m], 0) / pairs_a_row;
    if (pairs[m] >= 0) n_x = m + 1;
  }

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
      float numbers[4][4];
#pragma unroll
      for (int r = 0; r < 4; r++) lr_numbers(numbers[r], w[r / 2], i, r % 2);
#pragma unroll
      for (int m = 0; m < N_X; m++) {
        if (m >= n_x) break;
        float v[4];
        lr_four(v, x + long(rows[m]) * n_cols, tile * 64 + i * 16 + t * 4, n_cols);
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
          for (int r = 0; r < 4; r++) sum[r][m] = fma(numbers[r][j], v[j], sum[r][m]);
      }
    }
  }

  threadgroup float partial[N_SEGMENTS * N_X * 32];
#pragma unroll
  for (int m = 0; m < N_X; m++) {
    if (m >= n_x) break;
#pragma unroll
    for (int r = 0; r < 4; r++) {
      float chains = sum[r][m] + simd_shuffle_xor(sum[r][m], 1);
      chains += simd_shuffle_xor(chains, 2);
      if (t == r) partial[(simdgroup * N_X + m) * 32 + r * 8 + lane / 4] = chains;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int row = at % ROWS, m = at / ROWS, n = first_row + row;
  if (m >= n_x || n < 0 || n >= n_out) return;
  float total[SIDES];
#pragma unroll
  for (int side = 0; side < SIDES; side++) {
    total[side] = 0.f;
    for (int i = 0; i < N_SEGMENTS; i++) total[side] += partial[(i * N_X + m) * 32 + 16 * side + row];
  }
#if SIDES == 2
  const float gate = lr_biased(EXPERT(0, 0), n, total[0]), up = lr_biased(EXPERT(1, 4), n, total[1]);
  lr_store(EXPERT(1, 4), pairs[m], n, up, gate, x, false, 1.f);
#else
  lr_store(EXPERT(0, 0), pairs[m], n, lr_biased(EXPERT(0, 0), n, total[0]), 0.f, x, false, 1.f);
#endif
}

// Sums for many rows of x, to the bits of linear_few.cuh: weights go from memory straight into the registers of the tensor
// cores, x through shared memory, two stages ahead of its use.
#pragma once
#include "dot.cuh"
#include "linear.cuh"
#ifndef N_X
#define N_X 64  // rows of x a block takes, a multiple of 16
#endif
#define N_WARPS 4  // each has a row tile of the weights
#define STAGES 3
#define STRIDE 80  // bytes of 64 codes in shared memory: 20 words keep the eight rows of a fragment in different banks
#ifndef GATHERED
#define GATHERED 0  // 1: rows of x lie anywhere, so each brings the groups of its neighbour, too
#endif

struct Stage {
  __align__(16) uint8_t codes[N_X * STRIDE];
  __align__(16) int4 groups[2][GATHERED ? N_X : N_X / 2];  // of two rows each
};

// total[n][2h + m]: row g + 8h of the weights, row 8n + 2t + m of x. `fetch_x(stage, tile)` asks for what a tile is
// multiplied with, `groups_of(stage, n, k)` finds the groups k of rows 8n + 2t and 8n + 2t + 1 there. Only the first
// `n_eights` times 8 rows are there.
template <class FetchX, class GroupsOf>
LR_INLINE void lr_sum_many(float (&total)[N_X / 8][4], Stage* stages, const lr_row_tile& at, int n_tiles, int n_eights,
                           const FetchX& fetch_x, const GroupsOf& groups_of) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, length = (n_tiles + N_SEGMENTS - 1) / N_SEGMENTS;
  const auto fetch = [&](int tile) {
    if (tile < n_tiles) fetch_x(stages[tile % STAGES], tile);
    lr_copy_commit();
  };
  lr_tile next;
  lr_load_tile(next, at, 0);
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++) fetch(i);

  float sum[N_X / 8][4] = {};
  for (int tile = 0, left = length; tile < n_tiles; tile++) {
    lr_copy_wait<STAGES - 2>();
    __syncthreads();  // the stage is there for all, and nobody reads the one that is filled next
    fetch(tile + STAGES - 1);
    lr_weights w;
    lr_unpack(w, next);
    if (tile + 1 < n_tiles) lr_load_tile(next, at, tile + 1);
    const Stage& stage = stages[tile % STAGES];
#pragma unroll
    for (int n = 0; n < N_X / 8; n++) {
      if (n >= n_eights) break;
      const int4 groups[2] = {groups_of(stage, n, 0), groups_of(stage, n, 1)};
      lr_multiply(sum[n], w, *(const uint4*)(stage.codes + (8 * n + g) * STRIDE + 16 * t), groups);
    }
    if (--left && tile + 1 < n_tiles) continue;
    left = length;  // a segment ends
#pragma unroll
    for (int n = 0; n < N_X / 8; n++)
#pragma unroll
      for (int j = 0; j < 4; j++) total[n][j] += sum[n][j], sum[n][j] = 0.f;
  }
  lr_copy_wait<0>();
}

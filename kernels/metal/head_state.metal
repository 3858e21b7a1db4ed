// A head's state [KEYS][columns] on its way through the rows of a text, 32 columns of it in the registers of 128 threads. Four
// lanes share a column: the one of part p has keys 16 i + 4 p ... + 3, so that they read four pieces of 16 bytes in a row.
#pragma once
#include "states.metal"
#define PIECES ((KEYS + 15) / 16)
#define PADDED (16 * PIECES)  // keys; those beyond KEYS are zeros
#define COLUMNS 32            // of a threadgroup
#define ROWS 8                // whose keys are in threadgroup memory together

struct lr_head_state {
  float4 s[PIECES];
  int part, columns;
  bool there;  // whether the column is one
};

LR_INLINE int lr_key(thread const lr_head_state& state, int i, int j) { return 16 * i + 4 * state.part + j; }
LR_INLINE bool lr_has(thread const lr_head_state& state, int i, int j) {
  return state.there && (KEYS % 16 == 0 || lr_key(state, i, j) < KEYS);
}
// from: the state at the column
LR_INLINE void lr_load_state(thread lr_head_state& state, device const float* from) {
#pragma unroll
  for (int i = 0; i < PIECES; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (lr_has(state, i, j)) state.s[i][j] = from[long(lr_key(state, i, j)) * state.columns];
}
LR_INLINE void lr_store_state(thread const lr_head_state& state, device float* to) {
#pragma unroll
  for (int i = 0; i < PIECES; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (lr_has(state, i, j)) to[long(lr_key(state, i, j)) * state.columns] = state.s[i][j];
}
// The sum over the four lanes of a column.
LR_INLINE float lr_parts_sum(float v) {
  v += simd_shuffle_xor(v, ushort(8));
  return v + simd_shuffle_xor(v, ushort(16));
}

// Attention of up to COLUMNS queries over one block of 64 keys and values, by a simdgroup, in fused multiply-adds of floats.
//
// What a query gets from a block is worked out from nothing: the greatest score m, the sum l of 2^(score - m) and the
// values o weighted by that. Two such states over different keys merge into one. attention.metal (few rows) and
// attention_tiles.metal (many) do both with the functions here and merge in one order, so they give the same bits.
#pragma once
#include "cache.metal"
#define UNIT_BLOCKS 8  // blocks merge within units of 512 positions, then units do
#define UNIT_TOKENS (UNIT_BLOCKS * KEYS)
#define COLUMNS (DIM > 128 ? 4 : 8)
#define PAIRS ((DIM + 63) / 64)  // of neighbouring dims of values that a lane has: from 2 * lane on, every 64
#define LOG2_E 1.44269504f

// Which keys a query sees: those up to its own, of the last `window`; or of the last `sink_window` and block 0. 0: no limit.
struct lr_sight {
  int window, sink_window;

  int first_position(int position) const {  // without block 0
    const int reach = window + sink_window;
    return reach && position >= reach ? position - reach + 1 : 0;
  }
};
LR_INLINE int lr_first_slot(thread const lr_sight& sight, int position, int number) {
  const int reach = sight.window + (number ? sight.sink_window : 0);
  return reach ? max(position - number * KEYS - reach + 1, 0) : 0;
}
LR_INLINE int lr_end_slot(int position, int number) { return min(position - number * KEYS + 1, KEYS); }
// Units of a row by `place`: those it sees, ascending; with a sink unit 0 first. What a row gets of each lies in parts
// [rows of the launch][heads][places][DIM + 2], o, m and l.
LR_INLINE int lr_unit(thread const lr_sight& sight, int position, int place) {
  const int first = sight.first_position(position) / UNIT_TOKENS;
  return sight.sink_window && place && first ? first + place - 1 : sight.sink_window ? place : first + place;
}

// What the columns of a simdgroup see of a block, and what they get of it. Every lane knows m and l of all.
struct lr_block {
  int low[COLUMNS], end[COLUMNS];  // slots
  float m[COLUMNS], l[COLUMNS];
  float2 o[PAIRS][COLUMNS];
};

// s[i][c]: of key 8i + lane / 4. The dims of a key are shared by four lanes, four at a time; their sums meet in a tree.
template <int BITS> LR_INLINE void lr_scores(thread float (&s)[KEYS / 8][COLUMNS], threadgroup const float* q,
                                             thread const lr_cells& keys, int n_columns, uint lane) {
  const int t = int(lane % 4);
  for (int i = 0; i < KEYS / 8; i++) {
    float sum[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) sum[c] = 0.f;
    for (int d = 4 * t; d < DIM; d += 16) {
      const float4 k = lr_four_cells<BITS>(keys, 8 * i + int(lane / 4), d);
      for (int c = 0; c < COLUMNS; c++) {
        if (c >= n_columns) break;
        const float4 x = *(threadgroup const float4*)(q + c * DIM + d);
        sum[c] = fma(k.w, x.w, fma(k.z, x.z, fma(k.y, x.y, fma(k.x, x.x, sum[c]))));
      }
    }
    for (int c = 0; c < COLUMNS; c++) {
      sum[c] += simd_shuffle_xor(sum[c], 1);
      s[i][c] = sum[c] + simd_shuffle_xor(sum[c], 2);
    }
  }
}

// Scores become weights [64][COLUMNS].
LR_INLINE void lr_softmax(thread lr_block& block, thread float (&s)[KEYS / 8][COLUMNS], float scale, float softcap,
                          threadgroup float* weights, uint lane) {
  for (int c = 0; c < COLUMNS; c++) {
    float m = -INFINITY;
    for (int i = 0; i < KEYS / 8; i++) {
      const int key = 8 * i + int(lane / 4);
      float score = s[i][c] * scale;
      if (softcap != 0.f) score = lr_softcap(score, softcap) * LOG2_E;
      s[i][c] = key >= block.low[c] && key < block.end[c] ? score : -INFINITY;  // a hidden key may hold anything
      m = fmax(m, s[i][c]);
    }
    for (ushort by = 4; by < 32; by *= 2) m = fmax(m, simd_shuffle_xor(m, by));
    const float base = m == -INFINITY ? 0.f : m;
    float l = 0.f;
    for (int i = 0; i < KEYS / 8; i++) {
      const float w = lr_exp2(s[i][c] - base);
      if (int(lane % 4) == c % 4) weights[(8 * i + int(lane / 4)) * COLUMNS + c] = w;
      l += w;
    }
    for (ushort by = 4; by < 32; by *= 2) l += simd_shuffle_xor(l, by);
    block.m[c] = m, block.l[c] = l;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

// Values of the keys from `first` up to `end`, weighted, ascending; where `partly`, each column takes those it sees.
template <int BITS> LR_INLINE void lr_weigh(thread lr_block& block, threadgroup const float* weights,
                                            thread const lr_cells& values, int first, int end, bool partly, uint lane) {
  for (int i = 0; i < PAIRS; i++)
    for (int c = 0; c < COLUMNS; c++) block.o[i][c] = float2(0.f);
  for (int key = first; key < end; key++)
    for (int i = 0; i < PAIRS; i++) {
      const int d = 64 * i + 2 * int(lane);
      if (d >= DIM) break;
      const float2 v = lr_two_cells<BITS>(values, key, d);
      for (int c = 0; c < COLUMNS; c++) {
        if (partly && (key < block.low[c] || key >= block.end[c])) continue;
        const float w = weights[key * COLUMNS + c];
        block.o[i][c] = float2(fma(w, v.x, block.o[i][c].x), fma(w, v.y, block.o[i][c].y));
      }
    }
}

// The planes of a layer's cache, and which of its heads is meant. Of halves there are no scales, of native codecs no ring.
struct lr_cache {
  device const uchar *keys, *values;
  device const half *key_scales, *value_scales, *ring_keys, *ring_values;
  int n_layers, index, n_kv_heads, kv_head;
};

// All of it for a block whose low and end are set: the coded block of that number, or in halves the block of the ring.
LR_INLINE void lr_attend_block(thread lr_block& to, thread const lr_cache& cache, int block, bool in_ring,
                               threadgroup const float* q, threadgroup float* weights, int n_columns, float scale,
                               float softcap, uint lane) {
  int first = KEYS, end = 0;
  bool partly = false;
  for (int c = 0; c < COLUMNS; c++) {
    if (to.low[c] < to.end[c]) first = min(first, to.low[c]), end = max(end, to.end[c]);
    partly = partly || to.low[c] > 0 || to.end[c] < KEYS;
  }
  float s[KEYS / 8][COLUMNS];
#if HAS_RING
  if (in_ring) {
    const lr_cells keys = lr_cells_of((device const uchar*)cache.ring_keys, cache.ring_keys, 16, block, cache.n_layers,
                                      cache.index, cache.n_kv_heads, cache.kv_head);
    const lr_cells values = lr_cells_of((device const uchar*)cache.ring_values, cache.ring_values, 16, block,
                                        cache.n_layers, cache.index, cache.n_kv_heads, cache.kv_head);
    lr_scores<16>(s, q, keys, n_columns, lane);
    lr_softmax(to, s, scale, softcap, weights, lane);
    lr_weigh<16>(to, weights, values, first, end, partly, lane);
    return;
  }
#endif
  const lr_cells keys = lr_cells_of(cache.keys, cache.key_scales, KEY_BITS, block, cache.n_layers, cache.index,
                                    cache.n_kv_heads, cache.kv_head);
  const lr_cells values = lr_cells_of(cache.values, cache.value_scales, VALUE_BITS, block, cache.n_layers, cache.index,
                                      cache.n_kv_heads, cache.kv_head);
  lr_scores<KEY_BITS>(s, q, keys, n_columns, lane);
  lr_softmax(to, s, scale, softcap, weights, lane);
  lr_weigh<VALUE_BITS>(to, weights, values, first, end, partly, lane);
}

// State (m, l) takes in (m2, l2); the values of both are multiplied with keep and add (Milakov and Gimelshein 2018). A
// state that saw nothing changes nothing.
struct lr_merge {
  float keep, add;
};
LR_INLINE lr_merge lr_merged(thread float& m, thread float& l, float m2, float l2) {
  const float top = fmax(m, m2), base = top == -INFINITY ? 0.f : top;
  const lr_merge by = {lr_exp2(m - base), lr_exp2(m2 - base)};
  m = top, l = fma(l2, by.add, l * by.keep);
  return by;
}
LR_INLINE float lr_mixed(thread const lr_merge& by, float o, float o2) { return fma(o2, by.add, o * by.keep); }
// The last step: learned sinks join, and the sum is divided by; no -0, which would tell how many blocks were looked at.
LR_INLINE float lr_finished(float o, float m, float l, bool has_sink, float sink) {
  if (has_sink) o = lr_mixed(lr_merged(m, l, sink * LOG2_E, 1.f), o, 0.f);
  return o / l + 0.f;
}

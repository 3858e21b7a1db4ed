// Attention of many rows: a simdgroup walks the keys of one KV head for a tile of columns, queries of neighbouring rows and
// of the heads that share the keys. The same bits as attention.metal.
#include "attention_block.metal"
#ifndef N_SIMDGROUPS
#define N_SIMDGROUPS 4
#endif

// A simdgroup's columns, and what they got of the keys so far.
struct lr_columns {
  int position[COLUMNS];  // -1: not of these rows
  long at[COLUMNS];       // of the column's query, and of its result
  float2 o[PAIRS][COLUMNS];
  float m[COLUMNS], l[COLUMNS];          // of the unit
  float all_m[COLUMNS], all_l[COLUMNS];  // of the units before it, whose values are in out
};
LR_INLINE void lr_begin_unit(thread lr_columns& of) {
  for (int c = 0; c < COLUMNS; c++) {
    of.m[c] = -INFINITY, of.l[c] = 0.f;
    for (int i = 0; i < PAIRS; i++) of.o[i][c] = float2(0.f);
  }
}
LR_INLINE void lr_end_unit(thread lr_columns& of, device float* out, bool is_first, uint lane) {
  for (int c = 0; c < COLUMNS; c++) {
    if (of.position[c] < 0) continue;
    const lr_merge by = lr_merged(of.all_m[c], of.all_l[c], of.m[c], of.l[c]);
    for (int i = 0; i < PAIRS; i++) {
      const int d = 64 * i + 2 * int(lane);
      if (d >= DIM) break;
      device float* const to = out + of.at[c] + d;
      to[0] = lr_mixed(by, is_first ? 0.f : to[0], of.o[i][c].x);
      to[1] = lr_mixed(by, is_first ? 0.f : to[1], of.o[i][c].y);
    }
  }
}
LR_INLINE void lr_load_queries(threadgroup float* queries, device const float* q, thread const lr_columns& of, uint lane) {
  simdgroup_barrier(mem_flags::mem_threadgroup);  // those before these are read no more
  for (int c = 0; c < COLUMNS; c++)
    for (int d = int(lane); d < DIM; d += 32) queries[c * DIM + d] = of.position[c] < 0 ? 0.f : q[of.at[c] + d];
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

// Columns are rows * (heads of a KV head); group.y: KV heads. Rows that are alone are left out; null: none is. See
// attend_units for the rest.
LR_THREADS(32 * N_SIMDGROUPS)
kernel void attend_tiles(
    device const float* q [[buffer(0)]], device const float* sink_q [[buffer(1)]], device const uchar* keys [[buffer(2)]],
    device const half* key_scales [[buffer(3)]], device const uchar* values [[buffer(4)]],
    device const half* value_scales [[buffer(5)]], device const half* ring_keys [[buffer(6)]],
    device const half* ring_values [[buffer(7)]], device const int* positions [[buffer(8)]],
    device const int* row_sequence [[buffer(9)]], device const int* table [[buffer(10)]],
    device const int* table_at [[buffer(11)]], device const int* sink [[buffer(12)]],
    device const int* own_ring [[buffer(13)]], device const int* ring_sink [[buffer(14)]],
    device const int* is_alone [[buffer(15)]], device const float* sinks [[buffer(16)]], device float* out [[buffer(17)]],
    constant int& n_rows [[buffer(18)]], constant int& n_heads [[buffer(19)]], constant int& n_kv_heads [[buffer(20)]],
    constant int& n_layers [[buffer(21)]], constant int& index [[buffer(22)]], constant int& window [[buffer(23)]],
    constant int& sink_window [[buffer(24)]], constant float& scale [[buffer(25)]], constant float& softcap [[buffer(26)]],
    constant uint& given [[buffer(27)]], uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float all_queries[N_SIMDGROUPS * COLUMNS * DIM];
  threadgroup float all_weights[N_SIMDGROUPS * KEYS * COLUMNS];
  threadgroup float* const queries = all_queries + simdgroup * COLUMNS * DIM;
  threadgroup float* const weights = all_weights + simdgroup * KEYS * COLUMNS;
  const int heads = n_heads / n_kv_heads, kv_head = int(group.y);
  const int first_column = (int(group.x) * N_SIMDGROUPS + int(simdgroup)) * COLUMNS;
  const int last_row = min((first_column + COLUMNS - 1) / heads, n_rows - 1);
  const lr_sight sight = {window, sink_window};
  const lr_cache cache = {keys, values, key_scales, value_scales, ring_keys, ring_values, n_layers, index, n_kv_heads, kv_head};

  for (int begin = first_column / heads, end; begin <= last_row; begin = end) {
    // Rows of one sequence, and where halves lie in a ring of one block, for they read that block there.
    const int sequence = row_sequence[begin];
    const bool left_out = LR_GIVEN(15) && is_alone[begin] != 0;
    int least = positions[begin], most = least;
    for (end = begin + 1; end <= last_row; end++) {
      const int position = positions[end];
      if (row_sequence[end] != sequence || (position < 0) != (most < 0)) break;
      if ((LR_GIVEN(15) && is_alone[end] != 0) != left_out || (HAS_RING && position / KEYS != most / KEYS)) break;
      least = min(least, position), most = max(most, position);
    }
    if (left_out) continue;
    lr_columns columns;
    for (int c = 0; c < COLUMNS; c++) {
      const int row = (first_column + c) / heads, head = kv_head * heads + (first_column + c) % heads;
      const bool there = row >= begin && row < end;
      columns.position[c] = there ? positions[row] : -1, columns.at[c] = (long(row) * n_heads + head) * DIM;
      columns.all_m[c] = -INFINITY, columns.all_l[c] = 0.f;
      for (int d = int(lane); there && most < 0 && d < DIM; d += 32) out[columns.at[c] + d] = 0.f;  // padding
    }
    if (most < 0) continue;

    const int first = sight.first_position(least) / KEYS;
    const bool with_sink = sink_window != 0 && first > 0;
    const int n_blocks = most / KEYS - first + 1 + int(with_sink), skipped = with_sink ? first - 1 : first;
    const bool turns = LR_GIVEN(1) && (with_sink || first == 0);
    bool is_first = true;
    lr_begin_unit(columns);
    for (int i = 0; i < n_blocks; i++) {
      const int number = with_sink && i == 0 ? 0 : skipped + i;
      if (i == 0) lr_load_queries(queries, turns ? sink_q : q, columns, lane);
      if (i == 1 && turns) lr_load_queries(queries, q, columns, lane);
      lr_block block;
      bool seen = false;
      for (int c = 0; c < COLUMNS; c++) {
        const int position = columns.position[c];
        block.low[c] = lr_first_slot(sight, position, number), block.end[c] = lr_end_slot(position, number);
        seen = seen || block.low[c] < block.end[c];
      }
      if (seen) {
        const bool in_ring = HAS_RING && (number == 0 || number == most / KEYS);
        int from = number ? table[table_at[sequence] + number] : sink[sequence];
        if (in_ring) from = number == most / KEYS ? own_ring[begin] / KEYS : ring_sink[sequence];
        lr_attend_block(block, cache, from, in_ring, queries, weights, COLUMNS, scale, softcap, lane);
        simdgroup_barrier(mem_flags::mem_threadgroup);  // the weights are read no more
        for (int c = 0; c < COLUMNS; c++) {
          if (block.low[c] >= block.end[c]) continue;
          const lr_merge by = lr_merged(columns.m[c], columns.l[c], block.m[c], block.l[c]);
          for (int pair = 0; pair < PAIRS; pair++) {
            const float2 o = columns.o[pair][c], more = block.o[pair][c];
            columns.o[pair][c] = float2(lr_mixed(by, o.x, more.x), lr_mixed(by, o.y, more.y));
          }
        }
      }
      if (i + 1 == n_blocks || (skipped + i + 1) / UNIT_BLOCKS != number / UNIT_BLOCKS) {
        lr_end_unit(columns, out, is_first, lane);
        lr_begin_unit(columns);
        is_first = false;
      }
    }
    for (int c = 0; c < COLUMNS; c++) {
      if (columns.position[c] < 0) continue;
      const float sink_score = LR_GIVEN(16) ? sinks[kv_head * heads + (first_column + c) % heads] : 0.f;
      for (int d = 2 * int(lane); d < DIM; d += 64)
        for (int j = 0; j < 2; j++) {
          device float& x = out[columns.at[c] + d + j];
          x = lr_finished(x, columns.all_m[c], columns.all_l[c], LR_GIVEN(16), sink_score);
        }
    }
  }
}

// Attention of few rows: a threadgroup has 512 positions of one KV head for one row, a simdgroup one block of 64 keys; then
// the parts of a row are merged.
#include "attention_block.metal"
#define MERGED 8  // parts at a time

// Logical block n of a sequence is block table[table_at + n], block 0 is `sink`; in halves the block of a row's own position
// is own_ring / 64, block 0 ring_sink. `rows`: which there are, -1 for none; null: all. group.y: KV heads, and for more
// queries of each than columns as many tiles. Where a text has one place alone, `out` is finished at once.
LR_THREADS(256)
kernel void attend_units(
    device const float* q [[buffer(0)]], device const float* sink_q [[buffer(1)]], device const uchar* keys [[buffer(2)]],
    device const half* key_scales [[buffer(3)]], device const uchar* values [[buffer(4)]],
    device const half* value_scales [[buffer(5)]], device const half* ring_keys [[buffer(6)]],
    device const half* ring_values [[buffer(7)]], device const int* positions [[buffer(8)]],
    device const int* row_sequence [[buffer(9)]], device const int* table [[buffer(10)]],
    device const int* table_at [[buffer(11)]], device const int* sink [[buffer(12)]],
    device const int* own_ring [[buffer(13)]], device const int* ring_sink [[buffer(14)]],
    device const int* rows [[buffer(15)]], device const float* sinks [[buffer(16)]], device float* parts [[buffer(17)]],
    device float* out [[buffer(18)]], constant int& n_heads [[buffer(19)]], constant int& n_kv_heads [[buffer(20)]],
    constant int& n_layers [[buffer(21)]], constant int& index [[buffer(22)]], constant int& window [[buffer(23)]],
    constant int& sink_window [[buffer(24)]], constant float& scale [[buffer(25)]], constant float& softcap [[buffer(26)]],
    constant uint& given [[buffer(27)]], uint3 group [[threadgroup_position_in_grid]],
    uint3 n_groups [[threadgroups_per_grid]], uint at [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float queries[2 * COLUMNS * DIM];  // the second towards block 0
  threadgroup float weights[UNIT_BLOCKS * KEYS * COLUMNS];
  threadgroup float of_m[UNIT_BLOCKS * COLUMNS];
  threadgroup float of_l[UNIT_BLOCKS * COLUMNS];
  const int row = LR_GIVEN(15) ? rows[group.z] : int(group.z), n_places = int(n_groups.x);
  const int position = row < 0 ? -1 : positions[row];
  const lr_sight sight = {window, sink_window};
  const int unit = lr_unit(sight, position, int(group.x));
  const int heads = n_heads / n_kv_heads, tiles = (heads + COLUMNS - 1) / COLUMNS;
  const int kv_head = int(group.y) / tiles, first = int(group.y) % tiles * COLUMNS;  // first: of the heads of a KV head
  const int n_columns = min(heads - first, COLUMNS);
  const long head = long(row) * n_heads + kv_head * heads + first;
  if (unit * UNIT_TOKENS > position) {
    if (row >= 0 && position < 0 && n_places == 1)  // padding
      for (int i = int(at); i < n_columns * DIM; i += 32 * UNIT_BLOCKS) out[head * DIM + i] = 0.f;
    return;
  }
  for (int i = int(at); i < COLUMNS * DIM; i += 32 * UNIT_BLOCKS) {
    const bool there = i < n_columns * DIM;
    queries[i] = there ? q[head * DIM + i] : 0.f;
    if (unit == 0 && LR_GIVEN(1)) queries[COLUMNS * DIM + i] = there ? sink_q[head * DIM + i] : 0.f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  const int number = unit * UNIT_BLOCKS + int(simdgroup), sequence = row_sequence[row];
  threadgroup float* const mine = weights + simdgroup * KEYS * COLUMNS;
  lr_block block;
  for (int c = 0; c < COLUMNS; c++) {
    block.low[c] = lr_first_slot(sight, position, number), block.end[c] = lr_end_slot(position, number);
    block.m[c] = -INFINITY, block.l[c] = 0.f;
  }
  if (block.low[0] < block.end[0]) {
    const bool in_ring = HAS_RING && (number == 0 || number == position / KEYS);
    int from = number ? table[table_at[sequence] + number] : sink[sequence];
    if (in_ring) from = number == position / KEYS ? own_ring[row] / KEYS : ring_sink[sequence];
    const lr_cache cache = {keys, values, key_scales, value_scales, ring_keys, ring_values, n_layers, index, n_kv_heads, kv_head};
    threadgroup const float* const query = queries + (number == 0 && LR_GIVEN(1) ? COLUMNS * DIM : 0);
    lr_attend_block(block, cache, from, in_ring, query, mine, n_columns, scale, softcap, lane);
  }
  if (lane == 0)
    for (int c = 0; c < COLUMNS; c++) of_m[simdgroup * COLUMNS + c] = block.m[c], of_l[simdgroup * COLUMNS + c] = block.l[c];

  // A simdgroup merges what all have of its column, 64 dims at a time; values take the place of the weights.
  const int column = int(simdgroup);
  device float* const part = parts + ((long(group.z) * n_heads + kv_head * heads + first + column) * n_places + group.x) * (DIM + 2);
  for (int i = 0; i < PAIRS; i++) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (block.low[0] < block.end[0])
      for (int c = 0; c < COLUMNS; c++)
        mine[64 * c + 2 * lane] = block.o[i][c].x, mine[64 * c + 2 * lane + 1] = block.o[i][c].y;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (column >= n_columns) continue;
    float m = -INFINITY, l = 0.f;
    float2 o = float2(0.f);
    for (int b = 0; b < UNIT_BLOCKS; b++) {
      const int which = unit * UNIT_BLOCKS + b;
      if (lr_first_slot(sight, position, which) >= lr_end_slot(position, which)) continue;
      const lr_merge by = lr_merged(m, l, of_m[b * COLUMNS + column], of_l[b * COLUMNS + column]);
      threadgroup const float* const from = weights + b * KEYS * COLUMNS + 64 * column + 2 * lane;
      o = float2(lr_mixed(by, o.x, from[0]), lr_mixed(by, o.y, from[1]));
    }
    const int d = 64 * i + 2 * int(lane);
    if (n_places == 1) {  // as attend_merge does of one part
      float m1 = -INFINITY, l1 = 0.f;
      const lr_merge by = lr_merged(m1, l1, m, l);
      const float sink_score = LR_GIVEN(16) ? sinks[kv_head * heads + first + column] : 0.f;
      if (d < DIM) {
        device float* const to = out + (head + column) * DIM + d;
        to[0] = lr_finished(lr_mixed(by, 0.f, o.x), m1, l1, LR_GIVEN(16), sink_score);
        to[1] = lr_finished(lr_mixed(by, 0.f, o.y), m1, l1, LR_GIVEN(16), sink_score);
      }
      continue;
    }
    if (d < DIM) part[d] = o.x, part[d + 1] = o.y;
    if (i == 0 && lane == 0) part[DIM] = m, part[DIM + 1] = l;
  }
}

// Units merge in ascending order, the sink is the last. A threadgroup has one head of one row.
LR_THREADS(128)
kernel void attend_merge(device const float* parts [[buffer(0)]], device const float* sinks [[buffer(1)]],
                         device const int* positions [[buffer(2)]], device const int* rows [[buffer(3)]],
                         device float* out [[buffer(4)]], constant int& n_places [[buffer(5)]],
                         constant int& window [[buffer(6)]], constant int& sink_window [[buffer(7)]],
                         constant uint& given [[buffer(8)]], uint3 group [[threadgroup_position_in_grid]],
                         uint3 n_groups [[threadgroups_per_grid]], uint at [[thread_index_in_threadgroup]]) {
  const int head = int(group.x), n_heads = int(n_groups.x), row = LR_GIVEN(3) ? rows[group.y] : int(group.y);
  if (row < 0) return;
  const int position = positions[row];
  const lr_sight sight = {window, sink_window};
  device const float* const from = parts + (long(group.y) * n_heads + head) * n_places * (DIM + 2);
  device float* const to = out + (long(row) * n_heads + head) * DIM;
  int n_seen = 0;
  while (n_seen < n_places && lr_unit(sight, position, n_seen) * UNIT_TOKENS <= position) n_seen++;
  for (int d = int(at); d < DIM; d += 128) {
    float o = 0.f, m = -INFINITY, l = 0.f;
    for (int first = 0; first < n_seen; first += MERGED) {
      float of[MERGED], top[MERGED], sum[MERGED];  // all on their way before the first is waited for
      for (int i = 0; i < MERGED; i++) {
        device const float* const part = from + min(first + i, n_seen - 1) * (DIM + 2);
        of[i] = part[d], top[i] = part[DIM], sum[i] = part[DIM + 1];
      }
      for (int i = 0; i < MERGED; i++)
        if (first + i < n_seen) o = lr_mixed(lr_merged(m, l, top[i], sum[i]), o, of[i]);
    }
    to[d] = position < 0 ? 0.f : lr_finished(o, m, l, LR_GIVEN(1), LR_GIVEN(1) ? sinks[head] : 0.f);
  }
}

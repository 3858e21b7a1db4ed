// Attention of many rows: a block of threads walks the keys of one KV head for a tile of columns, queries of neighbouring
// rows and of the heads that share the keys; a warp has eight columns. Keys and values come through shared memory, 128
// dims at a time, each while the one before is used. The same bits as attention.cu.
#include "attention.cuh"
#ifndef N_WARPS
#define N_WARPS 4
#endif
#define THREADS (32 * N_WARPS)
#define TILE (COLUMNS * N_WARPS)
// Halves of a row in shared memory: the sixteen bytes that eight lanes read at a time lie in different banks.
#define KEY_STRIDE (PART + (48 - PART / 2 % 32) % 32 * 2)
#define VALUE_STRIDE (PART + 8)
#define STAGE (KEYS * (KEY_STRIDE > VALUE_STRIDE ? KEY_STRIDE : VALUE_STRIDE))

struct Shared {
  Query queries[N_WARPS];
  Weights weights[N_WARPS];
  __align__(16) uint16_t stages[2][STAGE];
};

// A part in shared memory.
struct Stage {
  const uint16_t* at;
  int stride;

  template <int N> __device__ void load(uint32_t (&to)[N / 2], int key, int dim) const {
    const uint16_t* from = at + key * stride + dim;
    if constexpr (N == 8) {
      const uint4 words = *(const uint4*)from;
      to[0] = words.x, to[1] = words.y, to[2] = words.z, to[3] = words.w;
    } else {
      const uint2 words = *(const uint2*)from;
      to[0] = words.x, to[1] = words.y;
    }
  }
};

// The keys and values of one head, block after block, part after part, on their way to shared memory.
struct Stream {
  const Cache& cache;
  const Blocks& blocks;
  int first, n_blocks;  // first: logical block after the sink
  bool with_sink;       // block 0 comes before the first
  uint16_t (*stages)[STAGE];
  int fetched = 0, used = 0;

  __device__ int number(int i) const { return with_sink ? (i ? first + i - 1 : 0) : first + i; }
  // Codes become fp16 on the way, by the threads themselves.
  template <int BITS> __device__ void copy(uint16_t* to, int row, const Cells<BITS, DIM>& from, int part) {
    const int width = lr_part_width(part);
#pragma unroll (BITS == 16 || DIM <= 128 ? 4 : 2)  // registers of wide heads hold no more codes under way
    for (int at = threadIdx.x; at < KEYS * width / 8; at += THREADS) {
      const int key = at / (width / 8), d = at % (width / 8) * 8, dim = part * PART + d;
      if constexpr (BITS == 16) {
        lr_copy_async(to + key * row + d, from.at + key * from.stride + 2 * dim);
      } else {
        uint32_t words[4];
        from.template load<8>(words, key, dim);
        *(uint4*)(to + key * row + d) = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }
  __device__ void fetch() {
    const int i = fetched / (2 * N_PARTS), part = fetched % N_PARTS;
    if (i < n_blocks) {
      const bool is_value = fetched / N_PARTS % 2, in_ring = blocks.in_ring(number(i));
      const int block = blocks[number(i)];
      uint16_t* to = stages[fetched % 2];
      if (is_value && in_ring) copy(to, VALUE_STRIDE, cache.ring_values_of(block), part);
      if (is_value && !in_ring) copy(to, VALUE_STRIDE, cache.values_of(block), part);
      if (!is_value && in_ring) copy(to, KEY_STRIDE, cache.ring_keys_of(block), part);
      if (!is_value && !in_ring) copy(to, KEY_STRIDE, cache.keys_of(block), part);
    }
    lr_copy_commit();
    fetched++;
  }
  // The next part; the one before it is overwritten.
  __device__ const uint16_t* next() {
    lr_copy_wait<0>();
    __syncthreads();  // it is there for all, and nobody reads the one before it any more
    fetch();
    return stages[used++ % 2];
  }
};

// Lane 4g + t of a warp has columns 2t and 2t + 1, and of their values dims g and g + 8 of every 16.
struct Columns {
  int position[2];  // -1: not of this sequence
  float* out[2];
  float o[DIM / 16][4], m[2], l[2];        // of the unit
  float total_m[2], total_l[2];            // of the units before it, whose values are in out
  bool first;

  __device__ void begin_unit() {
#pragma unroll
    for (int c = 0; c < 2; c++) m[c] = -INFINITY, l[c] = 0.f;
#pragma unroll
    for (int tile = 0; tile < DIM / 16; tile++)
#pragma unroll
      for (int j = 0; j < 4; j++) o[tile][j] = 0.f;
  }
  __device__ float& at(int tile, int j) { return out[j % 2][16 * tile + threadIdx.x % 32 / 4 + 8 * (j / 2)]; }
  __device__ void end_unit() {
#pragma unroll
    for (int c = 0; c < 2; c++) {
      if (position[c] < 0) continue;
      const Merge merge = lr_merge(total_m[c], total_l[c], m[c], l[c]);
#pragma unroll
      for (int tile = 0; tile < DIM / 16; tile++)
        for (int j = c; j < 4; j += 2) at(tile, j) = merge(first ? 0.f : at(tile, j), o[tile][j]);
    }
    first = false;
  }
  __device__ void finish(const float* sinks, const int (&head)[2]) {
#pragma unroll
    for (int c = 0; c < 2; c++) {
      if (position[c] < 0) continue;
      Merge merge = {1.f, 0.f};
      if (sinks) merge = lr_merge(total_m[c], total_l[c], sinks[head[c]] * LOG2_E, 1.f);
#pragma unroll
      for (int tile = 0; tile < DIM / 16; tile++)
        for (int j = c; j < 4; j += 2) at(tile, j) = (sinks ? merge(at(tile, j), 0.f) : at(tile, j)) / total_l[c] + 0.f;
    }
  }
};

// 16 keys × 16 dims of a part of the values, turned: the A operand of lr_mma_f16.
LR_INLINE void lr_turned_values(uint32_t (&a)[4], const uint16_t* values, int tile, int step) {
  const int lane = threadIdx.x % 32, matrix = lane / 8;
  lr_ldmatrix_trans(a, values + (16 * step + lane % 8 + 8 * (matrix / 2)) * VALUE_STRIDE + 16 * tile + 8 * (matrix % 2));
}

// As attend_units and attend_merge together. Columns are rows · (heads of a KV head), TILE of them a block of threads;
// gridDim.y: KV heads. Rows that are alone are left out; null: none is.
extern "C" __global__ void __launch_bounds__(THREADS, 1) attend_tiles(const float* q, const float* sink_q,
    const uint8_t* keys, const uint16_t* key_sides, const uint8_t* values, const uint16_t* value_sides,
    const uint8_t* ring_keys, const uint8_t* ring_values, const int* positions, const int* row_sequence,
    const int* table, const int* table_at, const int* sink, const int* ring_slots, const int* ring_sink,
    const int* is_alone, const float* sinks, float* out, int n_rows, int n_heads, int n_kv_heads, int n_layers, int index,
    int window, int sink_window, float scale, float softcap) {
  LR_DYNAMIC_SHARED(Shared, shared);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int group = n_heads / n_kv_heads, kv_head = blockIdx.y, first_column = blockIdx.x * TILE + warp * COLUMNS;
  const int last_row = min((int)(blockIdx.x * TILE + TILE - 1) / group, n_rows - 1);
  const Sight sight = {window, sink_window};
  const Cache cache = {keys, key_sides, values, value_sides, ring_keys, ring_values, n_kv_heads, n_layers, index, kv_head};
  const int query_row = (first_column + g) / group;
  const int64_t query_at = ((int64_t)query_row * n_heads + kv_head * group + (first_column + g) % group) * DIM;
  Query& query = shared->queries[warp];
  Columns columns;
  int row_of[2], head[2];
#pragma unroll
  for (int c = 0; c < 2; c++) {
    row_of[c] = (first_column + 2 * t + c) / group, head[c] = kv_head * group + (first_column + 2 * t + c) % group;
    columns.out[c] = out + ((int64_t)row_of[c] * n_heads + head[c]) * DIM;
  }

  for (int begin = blockIdx.x * TILE / group, end; begin <= last_row; begin = end) {
    // Rows of one sequence, and with a ring of one block, for they read that block there.
    const int sequence = row_sequence[begin];
    int least = positions[begin], most = least;
    const auto alike = [&](int row) {
      return row_sequence[row] == sequence && (positions[row] < 0) == (most < 0) &&
             (!HAS_RING || positions[row] / KEYS == most / KEYS) &&
             (is_alone == nullptr || is_alone[row] == is_alone[begin]);
    };
    for (end = begin + 1; end <= last_row && alike(end); end++)
      least = min(least, positions[end]), most = max(most, positions[end]);
#pragma unroll
    for (int c = 0; c < 2; c++)
      columns.position[c] = row_of[c] >= begin && row_of[c] < end ? positions[row_of[c]] : -1;
    if (is_alone && is_alone[begin]) continue;
    if (most < 0) {  // padding
#pragma unroll
      for (int c = 0; c < 2; c++)
        for (int d = g; row_of[c] >= begin && row_of[c] < end && d < DIM; d += 8) columns.out[c][d] = 0.f;
      continue;
    }
    const bool there = query_row >= begin && query_row < end;
    const int first = sight.first_position(least) / KEYS;
    const bool with_sink = sink_window && first > 0;
    Blocks blocks = {table + table_at[sequence], sink[sequence], most / KEYS};
#if HAS_RING
    blocks.ring_own = ring_slots[begin] / KEYS, blocks.ring_sink = ring_sink[sequence];
#endif
    Stream stream = {cache, blocks, first, most / KEYS - first + 1 + with_sink, with_sink, shared->stages};
    __syncthreads();  // the stages and queries of the sequence before are read no more
    stream.fetch();
    const bool turns = sink_q && stream.number(0) == 0;
    lr_pack_query(query, there ? (turns ? sink_q : q) + query_at : nullptr, scale, 0, 1);
    __syncwarp();
    columns.first = true;
#pragma unroll
    for (int c = 0; c < 2; c++) columns.total_m[c] = -INFINITY, columns.total_l[c] = 0.f;
    columns.begin_unit();

    for (int i = 0; i < stream.n_blocks; i++) {
      const int number = stream.number(i);
      int low[2], high[2];
      bool some = false, partly = false;
#pragma unroll
      for (int c = 0; c < 2; c++) {
        sight.slots(columns.position[c], number, low[c], high[c]);
        some |= low[c] < high[c], partly |= low[c] > 0 || high[c] < KEYS;
      }
      some = __ballot_sync(ALL_LANES, some) != 0, partly = __ballot_sync(ALL_LANES, partly) != 0;
      if (i == 1 && turns) {
        lr_pack_query(query, there ? q + query_at : nullptr, scale, 0, 1);
        __syncwarp();
      }
      float s[KEYS / 16][4] = {};
#pragma unroll
      for (int part = 0; part < N_PARTS; part++) {
        const Stage stage = {stream.next(), KEY_STRIDE};
        if (some) lr_add_scores(s, query, part, stage, 0);
      }
      float m[2], l[2];
      if (some) lr_softmax(s, query.scale, softcap, low, high, shared->weights[warp], m, l);
      const WeightFragments weights(shared->weights[warp]);
      Merge merge[2] = {{1.f, 0.f}, {1.f, 0.f}};
      if (some)
#pragma unroll
        for (int c = 0; c < 2; c++) merge[c] = lr_merge(columns.m[c], columns.l[c], m[c], l[c]);
      Broken broken;
#pragma unroll
      for (int part = 0; part < N_PARTS; part++) {
        const uint16_t* stage = stream.next();
        if (some)
#pragma unroll
          for (int tile = 0; tile < lr_part_width(part) / 16; tile++) {
            float c[4] = {};
#pragma unroll
            for (int step = 0; step < KEYS / 16; step++) {
              uint32_t a[4];
              lr_turned_values(a, stage, tile, step);
              lr_add_values(c, a, weights, step, partly, broken);
            }
            float(&o)[4] = columns.o[part * PART / 16 + tile];
#pragma unroll
            for (int j = 0; j < 4; j++) o[j] = merge[j % 2](o[j], c[j]);
          }
      }
      if (some && partly) broken.show_in(columns.l, low, high);
      if (i + 1 == stream.n_blocks || stream.number(i + 1) / UNIT_BLOCKS != number / UNIT_BLOCKS) {
        columns.end_unit();
        columns.begin_unit();
      }
    }
    columns.finish(sinks, head);
  }
}

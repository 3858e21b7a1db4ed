// Attention of few rows: a block of threads has 512 positions of one KV head for one row, a warp one block of 64 keys;
// then the parts of a row are merged.
#include "attention.cuh"
#include "q8.cuh"
#include "rotate.cuh"
#define MERGED 8  // parts at a time

struct Shared {
  Query queries[2];  // the second towards block 0
  union {
    Weights weights;
    float o[COLUMNS][PART + 4];
  } of_warp[UNIT_BLOCKS];
  float m[UNIT_BLOCKS][COLUMNS], l[UNIT_BLOCKS][COLUMNS];
};

// Values of W neighbouring dims of a block, weighted, into o[column][dim]. A lane takes W / 8 dims of the four keys it has
// in a step; halves of two keys change places to stand side by side. `first`: of the values, the dim that o begins with.
template <int W, int BITS> LR_INLINE void lr_weigh(float (*o)[PART + 4], int at, const Cells<BITS, DIM>& values, int first,
    const WeightFragments& weights, bool partly, Broken& broken) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, dim = at + W / 8 * g;
  float c[W / 16][4] = {};
#pragma unroll
  for (int step = 0; step < KEYS / 16; step++) {
    uint32_t of_key[4][W / 16];
#pragma unroll
    for (int j = 0; j < 4; j++) values.template load<W / 8>(of_key[j], 16 * step + 2 * t + j % 2 + j / 2 * 8, first + dim);
#pragma unroll
    for (int i = 0; i < W / 16; i++) {
      uint32_t a[4] = {__byte_perm(of_key[0][i], of_key[1][i], 0x5410), __byte_perm(of_key[0][i], of_key[1][i], 0x7632),
                       __byte_perm(of_key[2][i], of_key[3][i], 0x5410), __byte_perm(of_key[2][i], of_key[3][i], 0x7632)};
      lr_add_values(c[i], a, weights, step, partly, broken);
    }
  }
#pragma unroll
  for (int i = 0; i < W / 16; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) o[2 * t + j % 2][dim + 2 * i + j / 2] = c[i][j];
}
// Those of a part.
template <int BITS> LR_INLINE void lr_weigh_part(float (*o)[PART + 4], int part, const Cells<BITS, DIM>& values,
    const WeightFragments& weights, bool partly, Broken& broken) {
  const int width = lr_part_width(part), first = part * PART;
#pragma unroll
  for (int d = 0; d + 64 <= width; d += 64) lr_weigh<64>(o, d, values, first, weights, partly, broken);
  if (width & 32) lr_weigh<32>(o, width / 64 * 64, values, first, weights, partly, broken);
  if (width & 16) lr_weigh<16>(o, width / 32 * 32, values, first, weights, partly, broken);
}
template <int BITS> LR_INLINE void lr_score(float (&s)[KEYS / 16][4], const Query& query, const Cells<BITS, DIM>& keys) {
#pragma unroll
  for (int part = 0; part < N_PARTS; part++) lr_add_scores(s, query, part, keys, part * PART);
}

// Logical block n of a sequence is block table[table_at + n]; Cache and Blocks say the rest. ring_slots: where a row's token is
// in the ring, block · 64 + place. `rows`: which there are, -1 for none; null: all. gridDim.y: KV heads, and for more than
// eight queries of each as many tiles.
// One block of a multiprocessor is asked for where two would spill registers.
extern "C" __global__ void __launch_bounds__(32 * UNIT_BLOCKS, DIM > 64 ? 1 : 2) attend_units(const float* q,
    const float* sink_q, const uint8_t* keys, const uint16_t* key_sides, const uint8_t* values,
    const uint16_t* value_sides, const uint8_t* ring_keys, const uint8_t* ring_values, const int* positions,
    const int* row_sequence, const int* table, const int* table_at, const int* sink, const int* ring_slots,
    const int* ring_sink, const int* rows, float* parts, int n_heads, int n_kv_heads, int n_layers, int index, int window,
    int sink_window, float scale, float softcap) {
  const int row = rows ? rows[blockIdx.z] : blockIdx.z, position = row < 0 ? -1 : positions[row];
  const Sight sight = {window, sink_window};
  const int unit = lr_unit(sight, position, blockIdx.x);
  if (unit * UNIT_TOKENS > position) return;
  const int sequence = row_sequence[row];
  LR_DYNAMIC_SHARED(Shared, shared);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int group = n_heads / n_kv_heads, tiles = (group + COLUMNS - 1) / COLUMNS;
  const int kv_head = blockIdx.y / tiles, first = blockIdx.y % tiles * COLUMNS;  // first: of the group's heads
  const int64_t head = (int64_t)row * n_heads + kv_head * group + first;
  const int n_columns = min(group - first, COLUMNS);
  const bool there = g < n_columns;
  lr_pack_query(shared->queries[0], there ? q + (head + g) * DIM : nullptr, scale, warp, UNIT_BLOCKS);
  if (unit == 0 && sink_q)
    lr_pack_query(shared->queries[1], there ? sink_q + (head + g) * DIM : nullptr, scale, warp, UNIT_BLOCKS);
  __syncthreads();

  const int number = unit * UNIT_BLOCKS + warp;
  int low[2], high[2];
  sight.slots(position, number, low[0], high[0]);
  low[1] = low[0], high[1] = high[0];
  const bool seen = low[0] < high[0];
  float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.f, 0.f};
  const Cache cache = {keys, key_sides, values, value_sides, ring_keys, ring_values, n_kv_heads, n_layers, index, kv_head};
  Blocks blocks = {table + table_at[sequence], sink[sequence], position / KEYS};
#if HAS_RING
  blocks.ring_own = ring_slots[row] / KEYS, blocks.ring_sink = ring_sink[sequence];
#endif
  const int block = seen ? blocks[number] : 0;
  const bool in_ring = blocks.in_ring(number);
  auto& mine = shared->of_warp[warp];
  if (seen) {
    const Query& query = shared->queries[number == 0 && sink_q];
    float s[KEYS / 16][4] = {};
    if (in_ring) lr_score(s, query, cache.ring_keys_of(block));
    else lr_score(s, query, cache.keys_of(block));
    lr_softmax(s, query.scale, softcap, low, high, mine.weights, m, l);
  }
  const WeightFragments weights(mine.weights);
  __syncwarp();  // o takes the place of the weights
  if (g == 0)
    for (int c = 0; c < 2; c++) shared->m[warp][2 * t + c] = m[c];
  const bool partly = low[0] > 0 || high[0] < KEYS;
  const int64_t part_size = DIM + 2;
  Broken broken;
#pragma unroll
  for (int part = 0; part < N_PARTS; part++) {
    const int width = lr_part_width(part);
    if (seen && in_ring) lr_weigh_part(mine.o, part, cache.ring_values_of(block), weights, partly, broken);
    if (seen && !in_ring) lr_weigh_part(mine.o, part, cache.values_of(block), weights, partly, broken);
    if (part == N_PARTS - 1) {
      if (seen && partly) broken.show_in(l, low, high);
      if (g == 0)
        for (int c = 0; c < 2; c++) shared->l[warp][2 * t + c] = l[c];
    }
    __syncthreads();
    // A warp merges what the others have of its column.
    float* to = parts + ((((int64_t)blockIdx.z - row) * n_heads + head + warp) * gridDim.x + blockIdx.x) * part_size;
    float o[PART / 32 + 1] = {}, top = -INFINITY, sum = 0.f;
    for (int w = 0; w < UNIT_BLOCKS; w++) {
      if (!sight.sees(position, unit * UNIT_BLOCKS + w)) continue;
      const Merge merge = lr_merge(top, sum, shared->m[w][warp], part == N_PARTS - 1 ? shared->l[w][warp] : 0.f);
#pragma unroll
      for (int i = 0; i * 32 < width; i++)
        if (32 * i + lane < width) o[i] = merge(o[i], shared->of_warp[w].o[warp][32 * i + lane]);
    }
    if (warp < n_columns) {
      for (int i = 0; i * 32 < width; i++)
        if (32 * i + lane < width) to[part * PART + 32 * i + lane] = o[i];
      if (part == N_PARTS - 1 && lane == 0) to[DIM] = top, to[DIM + 1] = sum;
    }
    if (part < N_PARTS - 1) __syncthreads();
  }
}

// Units merge in ascending order, the sink is the last. A block of threads has one head of one row, which it turns back
// where keys and values are turned (`rotates`), and quantises where there are codes.
extern "C" __global__ void __launch_bounds__(HEAD_THREADS) attend_merge(const float* parts, const float* sinks,
    const int* positions, const int* rows, float* out, int n_places, int window, int sink_window, int rotates,
    uint8_t* codes, int2* groups, int stride, int padded_rows) {
  __shared__ float merged[DIM];
  const int head = blockIdx.x, row = rows ? rows[blockIdx.y] : blockIdx.y;
  if (row < 0) return;
  const int position = positions[row];
  const Sight sight = {window, sink_window};
  const float* from = parts + ((int64_t)blockIdx.y * gridDim.x + head) * n_places * (DIM + 2);
  int n_seen = 0;
  while (n_seen < n_places && lr_unit(sight, position, n_seen) * UNIT_TOKENS <= position) n_seen++;
  for (int d = threadIdx.x; d < DIM; d += HEAD_THREADS) {
    float o = 0.f, m = -INFINITY, l = 0.f;
    for (int first = 0; first < n_seen; first += MERGED) {
      float of[MERGED], top[MERGED], sum[MERGED];  // all on their way before the first is waited for
#pragma unroll
      for (int i = 0; i < MERGED; i++) {
        const float* part = from + (int64_t)min(first + i, n_seen - 1) * (DIM + 2);
        of[i] = part[d], top[i] = part[DIM], sum[i] = part[DIM + 1];
      }
#pragma unroll
      for (int i = 0; i < MERGED; i++)
        if (first + i < n_seen) o = lr_merge(m, l, top[i], sum[i])(o, of[i]);
    }
    if (sinks) o = lr_merge(m, l, sinks[head] * LOG2_E, 1.f)(o, 0.f);
    merged[d] = position < 0 ? 0.f : o / l + 0.f;  // no -0: it would tell how many blocks were looked at
  }
  if (rotates) lr_rotate(merged, DIM);
  else __syncthreads();
  out += ((int64_t)row * gridDim.x + head) * DIM;
  for (int d = threadIdx.x; d < DIM; d += HEAD_THREADS) out[d] = merged[d];
  for (int base = 0; codes && base < DIM; base += 4 * HEAD_THREADS) {  // whole warps: lanes quantise together
    const int d = base + 4 * threadIdx.x;
    float y[4];
#pragma unroll
    for (int j = 0; j < 4; j++) y[j] = d < DIM ? merged[d + j] : 0.f;
    lr_store_q8({codes, groups, d < DIM ? stride : 0, padded_rows}, row, head * DIM + d, y);
  }
}

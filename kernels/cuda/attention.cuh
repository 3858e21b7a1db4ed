// Attention of up to eight queries, the columns of the tensor core, over one block of 64 keys and values; codes become fp16
// as they are read.
//
// What a query gets from a block is worked out from nothing: the greatest score m, the sum l of 2^(score - m) and the
// values o weighted by that. Two such states over different keys merge into one. attention.cu (few rows) and
// attention_tiles.cu (many) do both with the functions here and merge in one order, so they give the same bits.
// Queries and weights are the sum of two fp16 numbers each, so that only keys and values are rounded to 11 bits.
#pragma once
#include "cache.cuh"
#include "numbers.cuh"
#define KEYS 64        // of a block
#define UNIT_BLOCKS 8  // blocks merge within units of 512 positions, then units do
#define UNIT_TOKENS (UNIT_BLOCKS * KEYS)
#define COLUMNS 8
#define PART (DIM < 128 ? DIM : 128)  // dims that are taken at a time
#define N_PARTS ((DIM + PART - 1) / PART)
#define LOG2_E 1.44269504f
#define ALL_LANES 0xffffffffu

LR_INLINE int lr_part_width(int part) { return part == N_PARTS - 1 ? DIM - part * PART : PART; }

// Which keys a query sees: those up to its own, of the last `window`; or of the last `sink_window` and block 0. 0: no limit.
struct Sight {
  int window, sink_window;

  __device__ int first_position(int position) const {  // without block 0
    const int reach = window + sink_window;
    return reach && position >= reach ? position - reach + 1 : 0;
  }
  // The slots [low, high) of block `number`.
  __device__ void slots(int position, int number, int& low, int& high) const {
    const int last = position - number * KEYS, reach = window + (number ? sink_window : 0);
    low = reach ? max(last - reach + 1, 0) : 0;
    high = min(last + 1, KEYS);
  }
  __device__ bool sees(int position, int number) const {
    int low, high;
    slots(position, number, low, high);
    return low < high;
  }
};

// Units of a row by `place`: those it sees, ascending; with a sink unit 0 first. What a row gets of each
// lies in parts [rows of the launch][heads][places][DIM + 2], o, m and l.
LR_INLINE int lr_unit(const Sight& sight, int position, int place) {
  const int first = sight.first_position(position) / UNIT_TOKENS;
  return sight.sink_window && place && first ? first + place - 1 : sight.sink_window ? place : first + place;
}

// Queries of eight columns as the B operand of lr_mma_f16: lane 4g + t has of column g, in every step of 16 dims, four dims
// that lie together, from lr_first_dim(step, t) on, as fp16 and as what that leaves.
struct Query {
  uint4 fragments[DIM / 16][32];
  float scale[COLUMNS];  // that the products still want
};
// Two steps at a time have 32 dims, of which t has eight: 16 bytes of a key.
LR_INLINE int lr_first_dim(int step, int t) {
  return step < DIM / 32 * 2 ? 32 * (step / 2) + 8 * t + 4 * (step % 2) : 16 * step + 4 * t;
}
// Steps warp, warp + n_warps, … of Query, by a warp; `q` is the query of this lane's column g, null for none.
LR_INLINE void lr_pack_query(Query& to, const float* q, float scale, int warp, int n_warps) {
  const int lane = threadIdx.x % 32, t = lane % 4;
  uint32_t top = 0;
  for (int step = 0; q && step < DIM / 16; step++) {
    const float4 x = *(const float4*)(q + lr_first_dim(step, t));
    const float xs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; j++) top = max(top, __float_as_uint(xs[j]) & 0x7fffffffu);
  }
  for (int by = 1; by < 4; by *= 2) top = max(top, __shfl_xor_sync(ALL_LANES, top, by));
  const int exponent = min(max((int)(top >> 23), 1), 253);  // brought to 1 … 2 by powers of two
  const float down = __int_as_float((254 - exponent) << 23), up = __int_as_float(exponent << 23);
  for (int step = warp; step < DIM / 16; step += n_warps) {
    float x[4], high[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      x[j] = q ? q[lr_first_dim(step, t) + j] * down : 0.f;
      high[j] = lr_half_to_float(lr_float_to_half(x[j]));
    }
    const uint32_t rest[2] = {lr_pack_half2(x[0] - high[0], x[1] - high[1]), lr_pack_half2(x[2] - high[2], x[3] - high[3])};
    const uint32_t near[2] = {lr_pack_half2(high[0], high[1]), lr_pack_half2(high[2], high[3])};
    to.fragments[step][lane] = make_uint4(near[0], near[1], rest[0], rest[1]);
  }
  if (warp == 0 && t == 0) to.scale[lane / 4] = up * scale;
}

LR_INLINE void lr_add_products(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint4 q) {
  const uint32_t a[4] = {a0, a1, a2, a3}, high[2] = {q.x, q.y}, rest[2] = {q.z, q.w};
  lr_mma_f16(c, a, high);
  lr_mma_f16(c, a, rest);
}
// Scores [tile of 16 keys] += keys · queries over the dims of a part, which lie in `keys` from `at` on.
template <class Rows> LR_INLINE void lr_add_scores(float (&s)[KEYS / 16][4], const Query& query, int part,
    const Rows& keys, int at) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, width = lr_part_width(part);
  const uint4(*fragments)[32] = query.fragments + part * PART / 16;
#pragma unroll
  for (int run = 0; run < width / 32; run++) {
    const uint4 q0 = fragments[2 * run][lane], q1 = fragments[2 * run + 1][lane];
#pragma unroll
    for (int tile = 0; tile < KEYS / 16; tile++) {
      uint32_t low[4], high[4];
      keys.template load<8>(low, 16 * tile + g, at + 32 * run + 8 * t);
      keys.template load<8>(high, 16 * tile + g + 8, at + 32 * run + 8 * t);
      lr_add_products(s[tile], low[0], high[0], low[1], high[1], q0);
      lr_add_products(s[tile], low[2], high[2], low[3], high[3], q1);
    }
  }
  if (width % 32) {
    const uint4 q = fragments[width / 16 - 1][lane];
#pragma unroll
    for (int tile = 0; tile < KEYS / 16; tile++) {
      uint32_t low[2], high[2];
      keys.template load<4>(low, 16 * tile + g, at + width / 32 * 32 + 4 * t);
      keys.template load<4>(high, 16 * tile + g + 8, at + width / 32 * 32 + 4 * t);
      lr_add_products(s[tile], low[0], high[0], low[1], high[1], q);
    }
  }
}

// Weights of a block, 2^(score - m), on their way from columns of a result to columns of an operand: fp16, and the rest.
struct Weights {
  uint16_t high[COLUMNS][KEYS + 8], rest[COLUMNS][KEYS + 8];
};
LR_INLINE float lr_over_keys(float v, bool greatest) {
#pragma unroll
  for (int by = 4; by < 32; by *= 2) {
    const float other = __shfl_xor_sync(ALL_LANES, v, by);
    v = greatest ? fmaxf(v, other) : v + other;
  }
  return v;
}
// Scores become weights; m and l of this lane's columns, 2t and 2t + 1, which see the slots [low, high).
LR_INLINE void lr_softmax(float (&s)[KEYS / 16][4], const float* scale, float softcap, const int (&low)[2],
    const int (&high)[2], Weights& weights, float (&m)[2], float (&l)[2]) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  m[0] = m[1] = -INFINITY, l[0] = l[1] = 0.f;
#pragma unroll
  for (int tile = 0; tile < KEYS / 16; tile++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int key = 16 * tile + g + 8 * (j / 2), c = j % 2;
      float score = s[tile][j] * scale[2 * t + c];
      if (softcap != 0.f) score = lr_softcap(score, softcap) * LOG2_E;
      s[tile][j] = key >= low[c] && key < high[c] ? score : -INFINITY;
      m[c] = fmaxf(m[c], s[tile][j]);
    }
#pragma unroll
  for (int c = 0; c < 2; c++) m[c] = lr_over_keys(m[c], true);
#pragma unroll
  for (int tile = 0; tile < KEYS / 16; tile++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int key = 16 * tile + g + 8 * (j / 2), c = j % 2;
      const float w = lr_exp2(s[tile][j] - (m[c] == -INFINITY ? 0.f : m[c]));
      const float near = lr_half_to_float(lr_float_to_half(w));
      l[c] += w;
      weights.high[2 * t + c][key] = lr_float_to_half(w), weights.rest[2 * t + c][key] = lr_float_to_half(w - near);
    }
#pragma unroll
  for (int c = 0; c < 2; c++) l[c] = lr_over_keys(l[c], false);
  __syncwarp();
}

// Weights as the B operand, a step for each 16 keys.
struct WeightFragments {
  uint32_t high[KEYS / 16][2], rest[KEYS / 16][2];

  __device__ explicit WeightFragments(const Weights& from) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        high[step][i] = *(const uint32_t*)&from.high[g][16 * step + 8 * i + 2 * t];
        rest[step][i] = *(const uint32_t*)&from.rest[g][16 * step + 8 * i + 2 * t];
      }
  }
};

// A block that some column sees only in part may hold anything in the slots it does not see. So values that are no numbers
// count as zero there, and a column that sees one of their keys becomes NaN.
struct Broken {
  uint32_t keys = 0;  // of this lane: bit 4 · step + j is key 16 · step + 2t + (0, 1, 8, 9)[j]

  __device__ uint32_t in(uint32_t& pair) {
    const uint32_t low = (pair & 0x7c00u) == 0x7c00u, high = (pair & 0x7c000000u) == 0x7c000000u;
    pair &= (low ? 0u : 0xffffu) | (high ? 0u : 0xffff0000u);
    return low | high << 1;
  }
  __device__ void take_from(uint32_t (&a)[4], int step) {
    keys |= (in(a[0]) | in(a[1])) << 4 * step;
    keys |= (in(a[2]) | in(a[3])) << (4 * step + 2);
  }
  // All lanes together: l of columns that see a broken key.
  __device__ void show_in(float (&l)[2], const int (&low)[2], const int (&high)[2]) {
    if (__ballot_sync(ALL_LANES, keys != 0) == 0) return;
    for (int by = 4; by < 32; by *= 2) keys |= __shfl_xor_sync(ALL_LANES, keys, by);
    for (int t = 0; t < 4; t++) {
      const uint32_t of_t = __shfl_sync(ALL_LANES, keys, t);
      for (int bit = 0; bit < 16; bit++) {
        const int key = 16 * (bit / 4) + 2 * t + bit % 2 + bit % 4 / 2 * 8;
        for (int c = 0; c < 2; c++)
          if ((of_t >> bit & 1) && key >= low[c] && key < high[c]) l[c] = __int_as_float(0x7fc00000);
      }
    }
  }
};
// c += values (16 dims × 16 keys) · weights.
LR_INLINE void lr_add_values(float (&c)[4], uint32_t (&a)[4], const WeightFragments& weights, int step, bool partly,
    Broken& broken) {
  if (partly) broken.take_from(a, step);
  lr_mma_f16(c, a, weights.high[step]);
  lr_mma_f16(c, a, weights.rest[step]);
}

// State (m, l) takes in (m2, l2); the values of both are multiplied with keep and add (Milakov and Gimelshein 2018). A
// state that saw nothing changes nothing.
struct Merge {
  float keep, add;
  __device__ float operator()(float o, float o2) const { return __fmaf_rn(o2, add, o * keep); }
};
LR_INLINE Merge lr_merge(float& m, float& l, float m2, float l2) {
  const float top = fmaxf(m, m2), base = top == -INFINITY ? 0.f : top;
  const Merge merge = {lr_exp2(m - base), lr_exp2(m2 - base)};
  m = top, l = merge(l, l2);
  return merge;
}

// A layer's part of the cache, and which of its heads is meant: planes [blocks][n_layers][64][n_kv_heads][…], this layer's at
// `index`. fp16 has no sides, and where nothing is coded there is no ring.
struct Cache {
  const uint8_t* keys;
  const uint16_t* key_sides;
  const uint8_t* values;
  const uint16_t* value_sides;
  const uint8_t *ring_keys, *ring_values;
  int n_kv_heads, n_layers, index, kv_head;

  template <int BITS> __device__ Cells<BITS, DIM> cells(const uint8_t* plane, const uint16_t* sides, int block) const {
    constexpr int bytes = lr_row_bytes(BITS, DIM), n_sides = lr_n_sides(BITS, DIM);
    const int64_t first = ((int64_t)block * n_layers + index) * KEYS * n_kv_heads + kv_head;
    return {plane + first * bytes, sides + first * n_sides, n_kv_heads * bytes, n_kv_heads * n_sides};
  }
  __device__ Cells<KEY_BITS, DIM> keys_of(int block) const { return cells<KEY_BITS>(keys, key_sides, block); }
  __device__ Cells<VALUE_BITS, DIM> values_of(int block) const { return cells<VALUE_BITS>(values, value_sides, block); }
  __device__ Cells<16, DIM> ring_keys_of(int block) const { return cells<16>(ring_keys, nullptr, block); }
  __device__ Cells<16, DIM> ring_values_of(int block) const { return cells<16>(ring_values, nullptr, block); }
};

// Where a logical block of a sequence is, for queries whose own block is `own`: block n is block table[n], block 0 is `sink`;
// in the ring the own block is ring_own and block 0 ring_sink.
struct Blocks {
  const int* table;
  int sink, own, ring_own, ring_sink;

  __device__ bool in_ring(int number) const { return HAS_RING && (number == 0 || number == own); }
  __device__ int operator[](int number) const {
    if (in_ring(number)) return number == own ? ring_own : ring_sink;
    return number ? table[number] : sink;
  }
};

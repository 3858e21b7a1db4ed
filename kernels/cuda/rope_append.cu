// Queries and keys are normed and turned by their positions; keys and values go to their blocks. A block of threads has
// one head of one row: first all heads of queries, then of keys, then of values.
#include "cache.cuh"
#include "numbers.cuh"
#include "rotate.cuh"
#define MAX_HEAD_DIM 512
#define MAX_GROUPS (MAX_HEAD_DIM / SCALE_DIMS)

enum { NO_NORM, HEAD_NORM, ROW_NORM };

struct Rope { const float *cos, *sin; };  // [rows][half]; null: nothing turns

struct Head {
  const float* x;       // [head_dim]
  const float* weight;  // [head_dim]; null: none
  float scale;          // of the norm
  bool normed;
  int head_dim, half;

  __device__ float at(int d) const {
    if (!normed) return x[d];
    return weight ? x[d] * scale * weight[d] : x[d] * scale;
  }
  // Dims d and d + half are a pair (GPT-NeoX); those past both halves stay.
  __device__ float turned(int d, const Rope& rope, int row) const {
    if (!rope.cos || d >= 2 * half) return at(d);
    const int pair = d < half ? d : d - half;
    const float c = rope.cos[(int64_t)row * half + pair], s = rope.sin[(int64_t)row * half + pair];
    return d < half ? at(d) * c - at(d + half) * s : at(d) * c + at(pair) * s;
  }
};

// 1 / rms of n numbers.
LR_INLINE float lr_norm_scale(const float* x, int n, float eps) {
  __shared__ float sums[32];
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum = __fmaf_rn(x[i], x[i], sum);
  return 1.f / sqrtf(lr_block_sum(sum, sums) / (float)n + eps);
}

// Large values stay finite; a NaN stays one.
LR_INLINE float lr_clamped(float x) { return x > 65504.f ? 65504.f : x < -65504.f ? -65504.f : x; }

// x as codes of so many bits, the sides of 128 dims by one warp: what localrun/backends/reference/kv_codes.py says, to the bit.
LR_INLINE void lr_encode(uint8_t* cells, uint16_t* sides, int bits, const float* x, int head_dim) {
  __shared__ float inverses[MAX_GROUPS], offsets[MAX_GROUPS];
  const int lane = threadIdx.x % 32, group = threadIdx.x / 32, end = min((group + 1) * SCALE_DIMS, head_dim);
  float high = -INFINITY, low = INFINITY;
  bool broken = false;
  for (int d = group * SCALE_DIMS + lane; d < end; d += 32)
    high = fmaxf(high, x[d]), low = fminf(low, x[d]), broken |= x[d] != x[d];
  for (int by = 16; by; by /= 2) {
    high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, by));
    low = fminf(low, __shfl_xor_sync(0xffffffffu, low, by));
  }
  if (__ballot_sync(0xffffffffu, broken)) high = low = __int_as_float(0x7fc00000);
  if (lane == 0 && group * SCALE_DIMS < head_dim) {
    const float cell = (high - low) / 16.f;
    const uint16_t scale = lr_float_to_half(bits == 8 ? (high > -low ? high : -low) / 127.f : cell);
    const uint16_t offset = lr_float_to_half(low + 8.5f * cell);
    sides[group] = scale;
    if (bits == 4) sides[lr_n_sides(8, head_dim) + group] = offset;
    const float wide = lr_half_to_float(scale);
    inverses[group] = wide > 0.f ? 1.f / wide : 0.f, offsets[group] = bits == 4 ? lr_half_to_float(offset) : 0.f;
  }
  __syncthreads();
  const auto code = [&](int d, float least, float most) {
    return (int)fminf(fmaxf(rintf((x[d] - offsets[d / SCALE_DIMS]) * inverses[d / SCALE_DIMS]), least), most);
  };
  if (bits == 8)
    for (int d = threadIdx.x; d < head_dim; d += HEAD_THREADS) cells[d] = (uint8_t)code(d, -127.f, 127.f);
  else
    for (int d = threadIdx.x; d < head_dim / 2; d += HEAD_THREADS)
      cells[d] = (uint8_t)((code(d, -8.f, 7.f) + 8) | (code(d + head_dim / 2, -8.f, 7.f) + 8) << 4);
}

// A plane of keys or values, [blocks][n_layers][64][n_kv_heads][…], as far as a layer and head are concerned.
struct Plane {
  uint8_t* cells;
  uint16_t* sides;
  int n_layers, index, n_kv_heads, head;

  // x [head_dim] to a slot, block · 64 + place; nothing where that is -1.
  __device__ void store(int bits, int slot, const float* x, int head_dim) const {
    if (slot < 0) return;
    const int64_t at = (((int64_t)(slot / 64) * n_layers + index) * 64 + slot % 64) * n_kv_heads + head;
    uint8_t* to = cells + at * lr_row_bytes(bits, head_dim);
    if (bits < 16) lr_encode(to, sides + at * lr_n_sides(bits, head_dim), bits, x, head_dim);
    for (int d = threadIdx.x; bits >= 16 && d < head_dim; d += HEAD_THREADS)
      if (bits == 16) ((uint16_t*)to)[d] = lr_float_to_half(x[d]);
      else ((float*)to)[d] = x[d];
  }
};

// `slots`: where a row goes among the coded (or only) blocks; ring_slots likewise in the ring. A second query, turned by
// sink_rope, where sink_q_out is there.
extern "C" __global__ void __launch_bounds__(HEAD_THREADS) rope_append(const float* q, const float* k, const float* v,
    const float* q_weight, const float* k_weight, const float* cos, const float* sin, const float* sink_cos,
    const float* sink_sin, const float* query_scale, const int* slots, const int* ring_slots, uint8_t* keys,
    uint16_t* key_sides, uint8_t* values, uint16_t* value_sides, uint8_t* ring_keys, uint8_t* ring_values, float* q_out,
    float* sink_q_out, int n_heads, int n_kv_heads, int head_dim, int half, int qk_norm, int v_norm, int n_layers,
    int index, float eps) {
  __shared__ float x[MAX_HEAD_DIM];
  const int row = blockIdx.y, is_k = (int)blockIdx.x >= n_heads, is_v = (int)blockIdx.x >= n_heads + n_kv_heads;
  const int head = blockIdx.x - (is_v ? n_heads + n_kv_heads : is_k ? n_heads : 0);
  const int width = (is_k ? n_kv_heads : n_heads) * head_dim;
  const float* of_row = (is_v ? v : is_k ? k : q) + (int64_t)row * width;
  const float* weight = is_v ? nullptr : is_k ? k_weight : q_weight;
  const int norm = is_v ? (v_norm ? HEAD_NORM : NO_NORM) : qk_norm;
  Head h = {of_row + head * head_dim, weight, 1.f, norm != NO_NORM, head_dim, half};
  if (norm == HEAD_NORM) h.scale = lr_norm_scale(h.x, head_dim, eps);
  if (norm == ROW_NORM) h.scale = lr_norm_scale(of_row, width, eps), h.weight += head * head_dim;

  for (int turn = 0; !is_k && turn < (sink_q_out ? 2 : 1); turn++) {
    const Rope rope = turn ? Rope{sink_cos, sink_sin} : Rope{cos, sin};
    for (int d = threadIdx.x; d < head_dim; d += HEAD_THREADS) x[d] = h.turned(d, rope, row) * query_scale[row];
    if (ROTATES) lr_rotate(x, head_dim);
    float* to = (turn ? sink_q_out : q_out) + (int64_t)row * width + head * head_dim;
    for (int d = threadIdx.x; d < head_dim; d += HEAD_THREADS) to[d] = x[d];  // each its own
  }
  if (!is_k || (slots[row] < 0 && !HAS_RING)) return;
  const auto clamped = [](float value) { return KEY_BITS == 32 ? value : lr_clamped(value); };
  for (int d = threadIdx.x; d < head_dim; d += HEAD_THREADS)
    x[d] = clamped(is_v ? h.at(d) : h.turned(d, {cos, sin}, row));
  if (ROTATES) {
    lr_rotate(x, head_dim);
    for (int d = threadIdx.x; d < head_dim; d += HEAD_THREADS) x[d] = clamped(x[d]);
    __syncthreads();
  }
  const Plane plane = {is_v ? values : keys, is_v ? value_sides : key_sides, n_layers, index, n_kv_heads, head};
  if (is_v) plane.store(VALUE_BITS, slots[row], x, head_dim);
  else plane.store(KEY_BITS, slots[row], x, head_dim);
#if HAS_RING
  Plane{is_v ? ring_values : ring_keys, nullptr, n_layers, index, n_kv_heads, head}.store(16, ring_slots[row], x, head_dim);
#endif
}

// Heads of rows [rows][gridDim.x][head_dim], turned by the Hadamard matrix: what attention over turned values gives is
// turned back.
extern "C" __global__ void __launch_bounds__(HEAD_THREADS) rotate_heads(float* rows, int head_dim) {
  __shared__ float x[MAX_HEAD_DIM];
  float* head = rows + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * head_dim;
  for (int d = threadIdx.x; d < head_dim; d += HEAD_THREADS) x[d] = head[d];
  lr_rotate(x, head_dim);
  for (int d = threadIdx.x; d < head_dim; d += HEAD_THREADS) head[d] = x[d];
}

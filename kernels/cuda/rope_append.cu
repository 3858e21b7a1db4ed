// Queries and keys are normed and turned by their positions; keys and values go to their blocks. A block of threads has
// one head of one row: first all heads of queries, then of keys, then of values.
#include "numbers.cuh"
#ifdef F32_CACHE
typedef float Cell;
LR_INLINE Cell lr_cell(float x) { return x; }
#else
typedef uint16_t Cell;
LR_INLINE Cell lr_cell(float x) {  // large values stay finite; a NaN stays one
  return lr_float_to_half(x > 65504.f ? 65504.f : x < -65504.f ? -65504.f : x);
}
#endif

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

// Keys and values: [blocks][n_layers][64][n_kv_heads][head_dim], this layer's at `index`. `slots`: block · 64 + place, or
// -1 where a row stores nothing. A second query, turned by sink_rope, where sink_q_out is there.
extern "C" __global__ void __launch_bounds__(128) rope_append(const float* q, const float* k, const float* v,
    const float* q_weight, const float* k_weight, const float* cos, const float* sin, const float* sink_cos,
    const float* sink_sin, const float* query_scale, const int* slots, Cell* keys, Cell* values, float* q_out,
    float* sink_q_out, int n_heads, int n_kv_heads, int head_dim, int half, int qk_norm, int v_norm, int n_layers,
    int index, float eps) {
  const int row = blockIdx.y, is_k = (int)blockIdx.x >= n_heads, is_v = (int)blockIdx.x >= n_heads + n_kv_heads;
  const int head = blockIdx.x - (is_v ? n_heads + n_kv_heads : is_k ? n_heads : 0);
  const int width = (is_k ? n_kv_heads : n_heads) * head_dim;
  const float* of_row = (is_v ? v : is_k ? k : q) + (int64_t)row * width;
  const float* weight = is_v ? nullptr : is_k ? k_weight : q_weight;
  const int norm = is_v ? (v_norm ? HEAD_NORM : NO_NORM) : qk_norm;
  Head h = {of_row + head * head_dim, weight, 1.f, norm != NO_NORM, head_dim, half};
  if (norm == HEAD_NORM) h.scale = lr_norm_scale(h.x, head_dim, eps);
  if (norm == ROW_NORM) h.scale = lr_norm_scale(of_row, width, eps), h.weight += head * head_dim;

  if (!is_k) {
    const int64_t to = (int64_t)row * width + head * head_dim;
    for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
      q_out[to + d] = h.turned(d, {cos, sin}, row) * query_scale[row];
      if (sink_q_out) sink_q_out[to + d] = h.turned(d, {sink_cos, sink_sin}, row) * query_scale[row];
    }
    return;
  }
  const int slot = slots[row];
  if (slot < 0) return;
  const int64_t token = ((int64_t)(slot / 64) * n_layers + index) * 64 + slot % 64;
  Cell* to = (is_v ? values : keys) + (token * n_kv_heads + head) * head_dim;
  for (int d = threadIdx.x; d < head_dim; d += blockDim.x) to[d] = lr_cell(is_v ? h.at(d) : h.turned(d, {cos, sin}, row));
}

// Queries and keys are normed and turned by their positions; keys and values go to their blocks. A threadgroup has one head
// of one row: first all heads of queries, then of keys, then of values.
#include "cache.metal"

enum { NO_NORM, HEAD_NORM, ROW_NORM };
#define THREADS 128
#define MOST_F16 65504.f

// Large values stay finite; a NaN stays one.
LR_INLINE float lr_clamped(float x) { return x > MOST_F16 ? MOST_F16 : x < -MOST_F16 ? -MOST_F16 : x; }

// Times an orthonormal Hadamard matrix over blocks of the greatest power of two that divides DIM: the fast Walsh-Hadamard
// transform, strides ascending. All threads of the group together; x [DIM] is there for all afterwards.
LR_INLINE void lr_rotate(threadgroup float* x, uint at) {
  const int size = DIM & -DIM;
  for (int stride = 1; stride < size; stride *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = int(at); i < DIM / 2; i += THREADS) {
      const int low = 2 * i - (i & (stride - 1)), high = low + stride;
      const float a = x[low], b = x[high];
      x[low] = a + b, x[high] = a - b;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float scale = 1.f / sqrt(float(size));
  for (int d = int(at); d < DIM; d += THREADS) x[d] *= scale;
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// x as codes of so many bits, the scales of 128 dims each by one simdgroup (localrun/backends/reference/kv_codes.py says
// what they are). `cells` and `scales` are those of a token and head.
LR_INLINE void lr_encode(device uchar* cells, device half* scales, int bits, threadgroup float* x, threadgroup float* sides,
                         uint at, uint simdgroup, uint lane) {
  const int first = int(simdgroup) * SCALE_DIMS, n_groups = (DIM + SCALE_DIMS - 1) / SCALE_DIMS;
  float high = -INFINITY, low = INFINITY;
  uint broken = 0;
  for (int d = first + int(lane); d < min(first + SCALE_DIMS, DIM); d += 32) {
    high = fmax(high, x[d]), low = fmin(low, x[d]);
    broken |= uint(x[d] != x[d]);
  }
  for (ushort by = 16; by > 0; by /= 2) {
    high = fmax(high, simd_shuffle_xor(high, by)), low = fmin(low, simd_shuffle_xor(low, by));
    broken |= simd_shuffle_xor(broken, by);
  }
  if (broken) high = low = NAN;
  const float cell = (high - low) / 16.f;
  const half scale = half(bits == 8 ? fmax(high, -low) / 127.f : cell), offset = half(fma(8.5f, cell, low));
  if (lane == 0 && first < DIM) {
    scales[simdgroup] = broken ? half(NAN) : scale;
    if (bits == 4) scales[n_groups + simdgroup] = offset;
    sides[2 * simdgroup] = float(scale) > 0.f ? 1.f / float(scale) : 0.f, sides[2 * simdgroup + 1] = float(offset);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (bits == 8) {
    for (int d = int(at); d < DIM; d += THREADS)
      cells[d] = uchar(char(int(clamp(rint(x[d] * sides[d / SCALE_DIMS * 2]), -127.f, 127.f))));
  } else {
    for (int d = int(at); d < DIM / 2; d += THREADS) {
      uint both = 0;
      for (int half_of = 0; half_of < 2; half_of++) {
        const int dim = d + half_of * (DIM / 2), group = dim / SCALE_DIMS * 2;
        const float code = clamp(rint((x[dim] - sides[group + 1]) * sides[group]), -8.f, 7.f);
        both |= uint(int(code) + 8) << (4 * half_of);
      }
      cells[d] = uchar(both);
    }
  }
}

// cells [blocks][n_layers][64][n_kv_heads][...], this layer's at `index`; slot: block * 64 + place, or -1 for nothing.
LR_INLINE void lr_store(device uchar* cells, device half* scales, int bits, int slot, int n_layers, int index, int n_kv_heads,
                        int head, threadgroup float* x, threadgroup float* sides, uint at, uint simdgroup, uint lane) {
  if (slot < 0) return;
  const long place = (((long(slot) / 64) * n_layers + index) * 64 + slot % 64) * n_kv_heads + head;
  device uchar* const to = cells + place * LR_ROW_BYTES(bits);
  if (bits < 16) {
    lr_encode(to, scales + place * LR_N_SCALES(bits), bits, x, sides, at, simdgroup, lane);
    return;
  }
  for (int d = int(at); d < DIM; d += THREADS)
    if (bits == 16) ((device half*)to)[d] = half(x[d]);
    else ((device float*)to)[d] = x[d];
}

// `slots`: where a row goes among the coded (or only) blocks; ring_slots likewise among those in halves. A second query,
// turned by sink_cos and sink_sin, where sink_q_out is there. Dims d and d + pairs turn together (GPT-NeoX).
LR_THREADS(THREADS)
kernel void rope_append(
    device const float* q [[buffer(0)]], device const float* k [[buffer(1)]], device const float* v [[buffer(2)]],
    device const float* q_weight [[buffer(3)]], device const float* k_weight [[buffer(4)]],
    device const float* cos [[buffer(5)]], device const float* sin [[buffer(6)]], device const float* sink_cos [[buffer(7)]],
    device const float* sink_sin [[buffer(8)]], device const float* query_scale [[buffer(9)]],
    device const int* slots [[buffer(10)]], device const int* ring_slots [[buffer(11)]], device uchar* keys [[buffer(12)]],
    device half* key_scales [[buffer(13)]], device uchar* values [[buffer(14)]], device half* value_scales [[buffer(15)]],
    device half* ring_keys [[buffer(16)]], device half* ring_values [[buffer(17)]], device float* q_out [[buffer(18)]],
    device float* sink_q_out [[buffer(19)]], constant int& n_heads [[buffer(20)]], constant int& n_kv_heads [[buffer(21)]],
    constant int& pairs [[buffer(22)]], constant int& qk_norm [[buffer(23)]], constant int& v_norm [[buffer(24)]],
    constant int& n_layers [[buffer(25)]], constant int& index [[buffer(26)]], constant float& eps [[buffer(27)]],
    constant uint& given [[buffer(28)]], uint3 group [[threadgroup_position_in_grid]],
    uint at [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float plain[DIM];
  threadgroup float x[DIM];
  threadgroup float sums[8];  // of a norm, then the sides of codes
  const int row = int(group.y), is_k = int(group.x) >= n_heads, is_v = int(group.x) >= n_heads + n_kv_heads;
  const int head = int(group.x) - (is_v ? n_heads + n_kv_heads : is_k ? n_heads : 0);
  const int width = (is_k ? n_kv_heads : n_heads) * DIM;
  device const float* const of_row = (is_v ? v : is_k ? k : q) + long(row) * width;
  device const float* const weight = is_k ? k_weight : q_weight;
  const bool weighted = !is_v && LR_GIVEN(is_k ? 4 : 3);
  const int norm = is_v ? (v_norm ? HEAD_NORM : NO_NORM) : qk_norm;
  float scale = 1.f;
  if (norm != NO_NORM) {
    device const float* const from = norm == ROW_NORM ? of_row : of_row + head * DIM;
    const int n = norm == ROW_NORM ? width : DIM;
    float sum = 0.f;
    for (int i = int(at); i < n; i += THREADS) sum = fma(from[i], from[i], sum);
    scale = 1.f / sqrt(lr_group_sum(sum, sums, simdgroup, lane, THREADS / 32) / float(n) + eps);
  }
  for (int d = int(at); d < DIM; d += THREADS) {
    float value = of_row[head * DIM + d];
    if (norm != NO_NORM) value = value * scale;
    plain[d] = weighted ? value * weight[(norm == ROW_NORM ? head * DIM : 0) + d] : value;
  }
  for (int turn = 0; turn < (!is_k && LR_GIVEN(19) ? 2 : 1); turn++) {
    device const float* const cosines = (turn ? sink_cos : cos) + long(row) * pairs;
    device const float* const sines = (turn ? sink_sin : sin) + long(row) * pairs;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int d = int(at); d < DIM; d += THREADS) {
      const int pair = d < pairs ? d : d - pairs;
      float value = plain[d];
      if (!is_v && d < 2 * pairs)
        value = d < pairs ? plain[d] * cosines[pair] - plain[d + pairs] * sines[pair]
                          : plain[d] * cosines[pair] + plain[pair] * sines[pair];
      x[d] = !is_k ? value * query_scale[row] : KEY_BITS == 32 ? value : lr_clamped(value);
    }
    if (ROTATES) lr_rotate(x, at);
    if (is_k) continue;
    device float* const to = (turn ? sink_q_out : q_out) + long(row) * width + head * DIM;
    for (int d = int(at); d < DIM; d += THREADS) to[d] = x[d];  // each its own
  }
  if (!is_k) return;
  for (int d = int(at); KEY_BITS != 32 && d < DIM; d += THREADS) x[d] = lr_clamped(x[d]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (is_v) lr_store(values, value_scales, VALUE_BITS, slots[row], n_layers, index, n_kv_heads, head, x, sums, at, simdgroup, lane);
  else lr_store(keys, key_scales, KEY_BITS, slots[row], n_layers, index, n_kv_heads, head, x, sums, at, simdgroup, lane);
#if HAS_RING
  lr_store((device uchar*)(is_v ? ring_values : ring_keys), key_scales, 16, ring_slots[row], n_layers, index, n_kv_heads,
           head, x, sums, at, simdgroup, lane);
#endif
}

// Rows of heads, turned by the Hadamard matrix: what attention over turned values gives is turned back.
LR_THREADS(THREADS)
kernel void rotate_heads(device float* rows [[buffer(0)]], uint3 group [[threadgroup_position_in_grid]],
                         uint3 n_groups [[threadgroups_per_grid]], uint at [[thread_index_in_threadgroup]]) {
  threadgroup float x[DIM];
  device float* const head = rows + (long(group.y) * n_groups.x + group.x) * DIM;
  for (int d = int(at); d < DIM; d += THREADS) x[d] = head[d];
  lr_rotate(x, at);
  for (int d = int(at); d < DIM; d += THREADS) head[d] = x[d];
}

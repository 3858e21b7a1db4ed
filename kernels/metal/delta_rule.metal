// The gated delta rule, row by row: how a text is cut into steps changes no bit. A threadgroup has 32 columns of a value
// head, KEYS keys each; gated_norm.metal follows.
#include "head_state.metal"

// Four pieces of keys of a row, and what is read with them.
LR_INLINE float lr_dot(float4 a, float4 b, float sum) {
#pragma unroll
  for (int j = 0; j < 4; j++) sum = fma(a[j], b[j], sum);
  return sum;
}

LR_THREADS(128)
kernel void delta_rule(device const float* qkv [[buffer(0)]], device const float* alpha [[buffer(1)]],
                       device const float* beta [[buffer(2)]], device const float* decay [[buffer(3)]],
                       device const float* dt_bias [[buffer(4)]], device float* numbers [[buffer(5)]],
                       device const int* before [[buffer(6)]], device const int* after [[buffer(7)]],
                       device const int* first_row [[buffer(8)]], device const int* n_rows [[buffer(9)]],
                       device float* out [[buffer(10)]], constant int& n_sequences [[buffer(11)]],
                       constant int& n_key_heads [[buffer(12)]], constant int& n_value_heads [[buffer(13)]],
                       constant int& columns [[buffer(14)]], constant int& tiled [[buffer(15)]],
                       constant int& block_numbers [[buffer(16)]], constant int& state_at [[buffer(17)]],
                       uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  // Of some rows: q and k at length 1, q over sqrt(KEYS) besides; v; how the state fades, the share of what is new, q * k.
  threadgroup float4 q[ROWS][PIECES * 4];
  threadgroup float4 k[ROWS][PIECES * 4];
  threadgroup float v[ROWS][COLUMNS];
  threadgroup float fades[ROWS];
  threadgroup float shares[ROWS];
  threadgroup float products[ROWS];
  const int head = int(group.y), first_column = int(group.x) * COLUMNS, at = int(simdgroup) * 8 + int(lane) % 8;
  const int column = first_column + at, n_keys = n_key_heads * KEYS;
  const int key_head = tiled != 0 ? head % n_key_heads : head * n_key_heads / n_value_heads;
  const int width = 2 * n_keys + n_value_heads * columns, value_at = 2 * n_keys + head * columns + first_column;
  const long place = state_at + long(head) * KEYS * columns + column;
  lr_head_state state;
  state.part = int(lane) / 8, state.columns = columns, state.there = column < columns;
  for (int s = int(group.z); s < n_sequences; s += int(groups.z)) {
    const int n = n_rows[s], first = first_row[s];
    if (n == 0) continue;
#pragma unroll
    for (int i = 0; i < PIECES; i++) state.s[i] = float4(0.f);
    if (before[s] >= 0) lr_load_state(state, lr_state(numbers, before[s], block_numbers, place));
    for (int row = 0; row < n; row++) {
      const int r = row % ROWS;
      if (r == 0) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int i = int(simdgroup); i < min(ROWS, n - row); i += 4) {
          const long whole = first + row + i;
          device const float* from = qkv + whole * width + key_head * KEYS;
          float q_q = 0.f, k_k = 0.f, q_k = 0.f;
          for (int c = int(lane); c < KEYS; c += 32) {
            const float a = from[c], b = from[n_keys + c];
            q_q = fma(a, a, q_q), k_k = fma(b, b, k_k), q_k = fma(a, b, q_k);
          }
          const float q_scale = 1.f / sqrt(lr_simd_sum(q_q) + 1e-6f) / sqrt(float(KEYS));
          const float k_scale = 1.f / sqrt(lr_simd_sum(k_k) + 1e-6f);
          q_k = lr_simd_sum(q_k);
          for (int c = int(lane); c < PADDED; c += 32) {
            ((threadgroup float*)q[i])[c] = c < KEYS ? from[c] * q_scale : 0.f;
            ((threadgroup float*)k[i])[c] = c < KEYS ? from[n_keys + c] * k_scale : 0.f;
          }
          v[i][lane] = first_column + int(lane) < columns ? qkv[whole * width + value_at + lane] : 0.f;
          if (lane == 0) {
            const float step = lr_softplus(alpha[whole * n_value_heads + head] + dt_bias[head]);
            fades[i] = lr_exp(decay[head] * step);
            shares[i] = lr_sigmoid(beta[whole * n_value_heads + head]);
            products[i] = q_k * q_scale * k_scale;
          }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      // S = decay * S + k x delta of delta = share * (v - decay * S'k); S'q is decay * S'q of the S before + (q * k) * delta.
      float recalled = 0.f, read = 0.f;
#pragma unroll
      for (int i = 0; i < PIECES; i++) {
        recalled = lr_dot(state.s[i], k[r][4 * i + state.part], recalled);
        read = lr_dot(state.s[i], q[r][4 * i + state.part], read);
      }
      const float fade = fades[r], delta = shares[r] * (v[r][at] - fade * lr_parts_sum(recalled));
      read = fma(products[r], delta, fade * lr_parts_sum(read));
#pragma unroll
      for (int i = 0; i < PIECES; i++) state.s[i] = fma(k[r][4 * i + state.part], float4(delta), fade * state.s[i]);
      if (state.there && state.part == 0) out[(long(first + row) * n_value_heads + head) * columns + column] = read;
      const int wanted = after[first + row];
      if (wanted >= 0) lr_store_state(state, lr_state(numbers, wanted, block_numbers, place));
    }
  }
}

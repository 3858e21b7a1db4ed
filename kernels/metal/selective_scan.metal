// The selective scan of Mamba-2, row by row: how a text is cut into steps changes no bit. A threadgroup has 32 columns of a
// head, KEYS keys each; gated_norm.metal follows.
#include "head_state.metal"

LR_THREADS(128)
kernel void selective_scan(device const float* xbc [[buffer(0)]], device const float* dt [[buffer(1)]],
                           device const float* decay [[buffer(2)]], device const float* dt_bias [[buffer(3)]],
                           device const float* skip [[buffer(4)]], device float* numbers [[buffer(5)]],
                           device const int* before [[buffer(6)]], device const int* after [[buffer(7)]],
                           device const int* first_row [[buffer(8)]], device const int* n_rows [[buffer(9)]],
                           device float* out [[buffer(10)]], constant int& n_sequences [[buffer(11)]],
                           constant int& n_heads [[buffer(12)]], constant int& n_groups [[buffer(13)]],
                           constant int& columns [[buffer(14)]], constant int& block_numbers [[buffer(15)]],
                           constant int& state_at [[buffer(16)]], uint3 group [[threadgroup_position_in_grid]],
                           uint3 groups [[threadgroups_per_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float4 b[ROWS][PIECES * 4];
  threadgroup float4 c[ROWS][PIECES * 4];
  threadgroup float x[ROWS][COLUMNS];
  threadgroup float steps[ROWS];
  threadgroup float fades[ROWS];
  const int head = int(group.y), first_column = int(group.x) * COLUMNS, at = int(simdgroup) * 8 + int(lane) % 8;
  const int column = first_column + at, n_x = n_heads * columns, n_keys = n_groups * KEYS;
  const int width = n_x + 2 * n_keys, b_at = n_x + head / (n_heads / n_groups) * KEYS;
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
          device const float* from = xbc + whole * width;
          for (int key = int(lane); key < PADDED; key += 32) {
            ((threadgroup float*)b[i])[key] = key < KEYS ? from[b_at + key] : 0.f;
            ((threadgroup float*)c[i])[key] = key < KEYS ? from[b_at + n_keys + key] : 0.f;
          }
          x[i][lane] = first_column + int(lane) < columns ? from[head * columns + first_column + lane] : 0.f;
          if (lane == 0) {
            const float step = lr_softplus(dt[whole * n_heads + head] + dt_bias[head]);
            steps[i] = step;
            fades[i] = lr_exp(decay[head] * step);
          }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      // S = decay * S + b x step * x, of which S'c + skip * x is read.
      const float added = steps[r] * x[r][at], fade = fades[r];
      float read = 0.f;
#pragma unroll
      for (int i = 0; i < PIECES; i++) {
        const float4 now = c[r][4 * i + state.part];
        state.s[i] = fma(b[r][4 * i + state.part], float4(added), fade * state.s[i]);
#pragma unroll
        for (int j = 0; j < 4; j++) read = fma(state.s[i][j], now[j], read);
      }
      read = fma(skip[head], x[r][at], lr_parts_sum(read));
      if (state.there && state.part == 0) out[(long(first + row) * n_heads + head) * columns + column] = read;
      const int wanted = after[first + row];
      if (wanted >= 0) lr_store_state(state, lr_state(numbers, wanted, block_numbers, place));
    }
  }
}

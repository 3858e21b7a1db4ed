// Causal convolutions of TAPS taps along a text, each channel by itself. A thread has a channel of 64 rows of a text: that of
// the first ones alone reads the state before, and writes the last one, which may take its place.
#include "states.metal"
#define ROWS 64

// A row's x of a channel; where it is gated, times the gate that lies before.
LR_INLINE float lr_input(device const float* x, int channels, bool is_gated) {
  return is_gated ? x[0] * x[2 * channels] : x[0];
}

// Leave the inputs of the last rows in a state.
LR_INLINE void lr_leave(device float* to, thread const float* seen, int channels) {
#pragma unroll
  for (int tap = 1; tap < TAPS; tap++) to[long(tap - 1) * channels] = seen[tap];
}

// x: [rows][channels]; gated: [rows][3 * channels], two gates and x.
LR_THREADS(128)
kernel void short_conv(device const float* x [[buffer(0)]], device const float* weight [[buffer(1)]],
                       device const float* bias [[buffer(2)]], device float* numbers [[buffer(3)]],
                       device const int* before [[buffer(4)]], device const int* after [[buffer(5)]],
                       device const int* first_row [[buffer(6)]], device const int* n_rows [[buffer(7)]],
                       device float* out [[buffer(8)]], constant int& n_sequences [[buffer(9)]],
                       constant int& channels [[buffer(10)]], constant int& gated [[buffer(11)]],
                       constant int& silu [[buffer(12)]], constant int& block_numbers [[buffer(13)]],
                       constant int& state_at [[buffer(14)]], constant uint& given [[buffer(15)]],
                       uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
                       uint thread_at [[thread_index_in_threadgroup]]) {
  const int channel = int(group.x) * 128 + int(thread_at), begin = int(group.y) * ROWS;
  if (channel >= channels) return;
  const int width = gated != 0 ? 3 * channels : channels;
  float w[TAPS];
#pragma unroll
  for (int tap = 0; tap < TAPS; tap++) w[tap] = weight[long(channel) * TAPS + tap];
  const float offset = LR_GIVEN(2) ? bias[channel] : 0.f;
  for (int s = int(group.z); s < n_sequences; s += int(groups.z)) {
    const int first = first_row[s], n = n_rows[s], end = min(begin + ROWS, n);
    if (begin >= end) continue;
    device const float* mine = x + long(first) * width + channel;
    float seen[TAPS];  // of the last rows, the newest at the end
#pragma unroll
    for (int tap = 1; tap < TAPS; tap++) {
      const int row = begin + tap - TAPS;
      seen[tap] = 0.f;
      if (row >= 0) seen[tap] = lr_input(mine + long(row) * width, channels, gated != 0);
      else if (before[s] >= 0)
        seen[tap] = lr_state(numbers, before[s], block_numbers, state_at)[long(row + TAPS - 1) * channels + channel];
    }
    for (int row = begin; row < end; row++) {
      device const float* now = mine + long(row) * width;
#pragma unroll
      for (int tap = 1; tap < TAPS; tap++) seen[tap - 1] = seen[tap];
      seen[TAPS - 1] = lr_input(now, channels, gated != 0);
      float y = offset;
#pragma unroll
      for (int tap = 0; tap < TAPS; tap++) y = fma(w[tap], seen[tap], y);
      if (silu != 0) y = lr_silu(y);
      out[long(first + row) * channels + channel] = gated != 0 ? y * now[channels] : y;
      if (row + 1 < n && after[first + row] >= 0)
        lr_leave(lr_state(numbers, after[first + row], block_numbers, state_at) + channel, seen, channels);
    }
    const int wanted = begin > 0 ? -1 : after[first + n - 1];
    if (wanted < 0) continue;
    if (n > ROWS)
#pragma unroll
      for (int tap = 1; tap < TAPS; tap++)
        seen[tap] = lr_input(mine + long(n + tap - TAPS) * width, channels, gated != 0);
    lr_leave(lr_state(numbers, wanted, block_numbers, state_at) + channel, seen, channels);
  }
}

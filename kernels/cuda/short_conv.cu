// Causal convolutions of TAPS taps along a text, each channel by itself. A thread has a channel of 64 rows of a text: that of
// the first ones alone reads the state before, and writes the last one, which may take its place.
#include "states.cuh"
#define ROWS 64
#define THREADS 128

// A row's x of a channel; where it is gated, times the gate that lies before.
struct Inputs {
  const float* x;  // [rows][width], at the channel
  int width, channels, gated;

  __device__ float at(int row) const {
    const float* mine = x + (int64_t)row * width;
    return gated ? __ldcg(mine) * __ldcg(mine + 2 * channels) : __ldcg(mine);
  }
  __device__ float gate(int row) const { return __ldcg(x + (int64_t)row * width + channels); }
};

// Leave the inputs of the last rows in a block, if it is one.
LR_INLINE void lr_leave(const States& states, int block, const float* seen, int channels) {
  if (block < 0) return;
  float* to = states.place(block);
#pragma unroll
  for (int tap = 1; tap < TAPS; tap++) to[(int64_t)(tap - 1) * channels] = seen[tap];
}

// x: [rows][channels]; gated: [rows][3 · channels], two gates and x.
extern "C" __global__ void __launch_bounds__(THREADS) short_conv(const float* x, const float* weight, const float* bias,
    float* numbers, const int* before, const int* after, const int* first_row, const int* n_rows, float* out,
    int n_sequences, int channels, int gated, int silu, int block_numbers, int state_at) {
  const int channel = blockIdx.x * THREADS + threadIdx.x, begin = blockIdx.y * ROWS;
  if (channel >= channels) return;
  const States states = {numbers, block_numbers, state_at + channel};
  float w[TAPS];
#pragma unroll
  for (int tap = 0; tap < TAPS; tap++) w[tap] = __ldg(weight + (int64_t)channel * TAPS + tap);
  const float offset = bias ? __ldg(bias + channel) : 0.f;
  for (int s = blockIdx.z; s < n_sequences; s += gridDim.z) {
    const int first = __ldcg(first_row + s), n = __ldcg(n_rows + s), end = min(begin + ROWS, n);
    if (begin >= end) continue;
    const int width = gated ? 3 * channels : channels;
    const Inputs inputs = {x + (int64_t)first * width + channel, width, channels, gated};
    const float* kept = states.before(__ldcg(before + s));
    float seen[TAPS];  // of the last rows, the newest at the end
#pragma unroll
    for (int tap = 1; tap < TAPS; tap++) {
      const int row = begin + tap - TAPS;
      seen[tap] = row >= 0 ? inputs.at(row) : kept ? __ldcg(kept + (int64_t)(row + TAPS - 1) * channels) : 0.f;
    }
    for (int row = begin; row < end; row++) {
#pragma unroll
      for (int tap = 1; tap < TAPS; tap++) seen[tap - 1] = seen[tap];
      seen[TAPS - 1] = inputs.at(row);
      float y = offset;
#pragma unroll
      for (int tap = 0; tap < TAPS; tap++) y = __fmaf_rn(w[tap], seen[tap], y);
      if (silu) y = lr_silu(y);
      out[(int64_t)(first + row) * channels + channel] = gated ? y * inputs.gate(row) : y;
      if (row + 1 < n) lr_leave(states, __ldcg(after + first + row), seen, channels);
    }
    if (begin) continue;
    if (n > ROWS)
#pragma unroll
      for (int tap = 1; tap < TAPS; tap++) seen[tap] = inputs.at(n + tap - TAPS);
    lr_leave(states, __ldcg(after + first + n - 1), seen, channels);
  }
}

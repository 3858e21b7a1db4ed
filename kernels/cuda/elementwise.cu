// Operations on each number by itself, a thread a number: gridDim.y rows of n.
#include "numbers.cuh"

extern "C" __global__ void __launch_bounds__(256) sigmoid_mul(const float* x, const float* gate, float* out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int64_t at = (int64_t)blockIdx.y * n + i;
  if (i < n) out[at] = x[at] * lr_sigmoid(gate[at]);
}

// x: rows of x_width, from `first` on. The tanh form of GELU: g/2 · (1 + tanh u) = g · sigmoid(2u).
extern "C" __global__ void __launch_bounds__(256) gelu_mul(const float* gate, const float* x, float* out, int n,
    int first, int x_width) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int64_t at = (int64_t)blockIdx.y * n + i;
  if (i >= n) return;
  const float g = gate[at], u = 0.79788456f * __fmaf_rn(g * g * 0.044715f, g, g);
  out[at] = g * lr_sigmoid(2.f * u) * x[(int64_t)blockIdx.y * x_width + first + i];
}

extern "C" __global__ void __launch_bounds__(256) scale(const float* x, float* out, int n, float factor) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int64_t at = (int64_t)blockIdx.y * n + i;
  if (i < n) out[at] = x[at] * factor;
}

// Row rows[i] of `from` -> row places[i] of `to`, for row i of the grid; -1: nowhere.
extern "C" __global__ void __launch_bounds__(256) gather_rows(const float* from, const int* rows, const int* places,
    float* to, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x, place = places[blockIdx.y];
  if (i < n && place >= 0) to[(int64_t)place * n + i] = __ldcg(from + (int64_t)rows[blockIdx.y] * n + i);
}

// xIELU with its learned numbers. e^x - 1 where x is near 0 is the sum of its powers, or the difference would be lost.
extern "C" __global__ void __launch_bounds__(256) xielu(const float* x, float* out, int n, float positive, float negative,
    float linear, float limit) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int64_t at = (int64_t)blockIdx.y * n + i;
  if (i >= n) return;
  const float v = x[at], e = v > limit ? limit : v;
  float below = __fmaf_rn(e, __fmaf_rn(e, 1.f / 720.f, 1.f / 120.f), 1.f / 24.f);
  below = e * __fmaf_rn(e, __fmaf_rn(e, __fmaf_rn(e, below, 1.f / 6.f), 0.5f), 1.f);
  if (e < -0.25f) below = lr_exp(e) - 1.f;
  out[at] = __fmaf_rn(linear, v, v > 0.f ? positive * v * v : negative * (below - v));
}

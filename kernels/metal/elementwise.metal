// Operations on each number by itself, a thread a number: group.y is the row, of n numbers.
#include "numbers.metal"

LR_THREADS(256)
kernel void sigmoid_mul(device const float* x [[buffer(0)]], device const float* gate [[buffer(1)]],
                        device float* out [[buffer(2)]], constant int& n [[buffer(3)]],
                        uint3 group [[threadgroup_position_in_grid]], uint thread_at [[thread_index_in_threadgroup]]) {
  const int i = int(group.x) * 256 + int(thread_at);
  const long at = long(group.y) * n + i;
  if (i < n) out[at] = x[at] * lr_sigmoid(gate[at]);
}

// x: rows of x_width, from `first` on. The tanh form of GELU: g/2 * (1 + tanh u) = g * sigmoid(2u).
LR_THREADS(256)
kernel void gelu_mul(device const float* gate [[buffer(0)]], device const float* x [[buffer(1)]],
                     device float* out [[buffer(2)]], constant int& n [[buffer(3)]], constant int& first [[buffer(4)]],
                     constant int& x_width [[buffer(5)]], uint3 group [[threadgroup_position_in_grid]],
                     uint thread_at [[thread_index_in_threadgroup]]) {
  const int i = int(group.x) * 256 + int(thread_at);
  const long at = long(group.y) * n + i;
  if (i >= n) return;
  const float g = gate[at], u = 0.79788456f * fma(g * g * 0.044715f, g, g);
  out[at] = g * lr_sigmoid(2.f * u) * x[long(group.y) * x_width + first + i];
}

LR_THREADS(256)
kernel void scale(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], constant int& n [[buffer(2)]],
                  constant float& factor [[buffer(3)]], uint3 group [[threadgroup_position_in_grid]],
                  uint thread_at [[thread_index_in_threadgroup]]) {
  const int i = int(group.x) * 256 + int(thread_at);
  const long at = long(group.y) * n + i;
  if (i < n) out[at] = x[at] * factor;
}

// Row rows[i] of `from` -> row places[i] of `to`, for row i of the grid; -1: nowhere.
LR_THREADS(256)
kernel void gather_rows(device const float* from [[buffer(0)]], device const int* rows [[buffer(1)]],
                        device const int* places [[buffer(2)]], device float* to [[buffer(3)]],
                        constant int& n [[buffer(4)]], uint3 group [[threadgroup_position_in_grid]],
                        uint thread_at [[thread_index_in_threadgroup]]) {
  const int i = int(group.x) * 256 + int(thread_at), place = places[group.y];
  if (i < n && place >= 0) to[long(place) * n + i] = from[long(rows[group.y]) * n + i];
}

// xIELU with its learned numbers. e^x - 1 where x is near 0 is the sum of its powers, or the difference would be lost.
LR_THREADS(256)
kernel void xielu(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], constant int& n [[buffer(2)]],
                  constant float& positive [[buffer(3)]], constant float& negative [[buffer(4)]],
                  constant float& linear [[buffer(5)]], constant float& limit [[buffer(6)]],
                  uint3 group [[threadgroup_position_in_grid]], uint thread_at [[thread_index_in_threadgroup]]) {
  const int i = int(group.x) * 256 + int(thread_at);
  const long at = long(group.y) * n + i;
  if (i >= n) return;
  const float v = x[at], e = v > limit ? limit : v;
  float below = fma(e, fma(e, 1.f / 720.f, 1.f / 120.f), 1.f / 24.f);
  below = e * fma(e, fma(e, fma(e, below, 1.f / 6.f), 0.5f), 1.f);
  if (e < -0.25f) below = lr_exp(e) - 1.f;
  out[at] = fma(linear, v, v > 0.f ? positive * v * v : negative * (below - v));
}

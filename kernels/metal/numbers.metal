// Functions of floats and sums over threads that several kernels share: IEEE operations in a fixed order.
#pragma once
#include "device.metal"

LR_INLINE float lr_sigmoid(float x) { return 1.f / (1.f + lr_exp(-x)); }
LR_INLINE float lr_softcap(float x, float softcap) { return softcap * tanh(x / softcap); }
LR_INLINE bool lr_is_finite(float x) { return (as_type<uint>(x) & 0x7f800000u) != 0x7f800000u; }

// A number as an integer of the same order, NaN above all and 0 like -0; in front of what makes of equals the lower id the
// greater. 0 is less than every key.
LR_INLINE ulong lr_key(float x, int id) {
  const uint bits = x != x ? 0x7fc00000u : x == 0.f ? 0u : as_type<uint>(x);
  return ulong((bits & 0x80000000u) ? ~bits : (bits | 0x80000000u)) << 32 | ulong(~uint(id));
}
LR_INLINE float lr_value(ulong key) {
  const uint ordered = uint(key >> 32);
  return as_type<float>((ordered & 0x80000000u) ? (ordered & 0x7fffffffu) : ~ordered);
}

// Four numbers of a row of n from `column` on, zeros beyond its end.
LR_INLINE void lr_four(thread float* to, device const float* row, int column, int n) {
  if (n % 4 == 0) {
    float4 v = float4(0.f);
    if (column < n) v = *(device const float4*)(row + column);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else {
    for (int j = 0; j < 4; j++) to[j] = column + j < n ? row[column + j] : 0.f;
  }
}

// The same sum in every lane; simd_sum() has no order that one could rely on.
LR_INLINE float lr_simd_sum(float v) {
#pragma unroll
  for (ushort by = 16; by > 0; by /= 2) v += simd_shuffle_xor(v, by);
  return v;
}
// The same sum in every thread of a group of n simdgroups; nobody else uses sums [n] meanwhile.
LR_INLINE float lr_group_sum(float v, threadgroup float* sums, uint simdgroup, uint lane, uint n) {
  v = lr_simd_sum(v);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) sums[simdgroup] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float total = 0.f;
  for (uint i = 0; i < n; i++) total += sums[i];
  return total;
}

// What a norm multiplies with, 1 / rms. Its sum of squares is that of 256 threads, each with every 256th four columns:
// lr_squares is the part of thread `at`; the parts are added as lr_group_sum does. Threads without columns add zeros, so
// a group that is as wide as the row gives the same.
LR_INLINE float lr_squares(device const float* x, int n, uint at) {
  float sum = 0.f;
  for (int column = 4 * int(at); column < n; column += 1024) {
    float v[4];
    lr_four(v, x, column, n);
    for (int j = 0; j < 4; j++) sum = fma(v[j], v[j], sum);
  }
  return sum;
}
LR_INLINE float lr_norm_scale(float squares, int n, float eps) { return 1.f / sqrt(squares / float(n) + eps); }

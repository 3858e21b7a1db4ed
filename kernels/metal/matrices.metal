// What the kernels of a linear share: which matrix a threadgroup has, and what becomes of a sum.
//
// One launch takes up to three matrices that read the same x (the others have no rows), or with SIDES 2 a gate and an up:
// then a group has the same rows of both. ACT: 0 none, 1 silu, 2 gelu by tanh, 3 silu clamped (gpt-oss), 4 max(0, y)^2.
// out[m][n] = residual[m][n] + out_scale * (scale * sum + bias[n]); with a gate act(gate) * (...) instead of the bracket,
// and a gate that no group has beside it waits in `out`.
//
// The columns are cut into eight segments of whole tiles. In a segment a number is four chains of fma, chain t over columns
// 4t to 4t + 3 of every 16 in ascending order; they are added as (0 + 1) + (2 + 3), and the segments in ascending order. So
// every kernel gives the same bits, for any number of rows.
#pragma once
#include "device.metal"
#ifndef ACT
#define ACT 0
#endif
#ifndef SIDES
#define SIDES 1
#endif
#define N_SEGMENTS 8

struct lr_linear {
  device const uchar* weights;
  device const float* bias;
  device float* out;
  float scale;
  int n_out;
  bool has_bias;
};
#define LINEAR_MATRICES                                                                             \
  device const uchar *weights0 [[buffer(0)]], device const float *bias0 [[buffer(1)]],              \
      device float *out0 [[buffer(2)]], constant float &scale0 [[buffer(3)]],                       \
      constant int &n_out0 [[buffer(4)]], device const uchar *weights1 [[buffer(5)]],               \
      device const float *bias1 [[buffer(6)]], device float *out1 [[buffer(7)]],                    \
      constant float &scale1 [[buffer(8)]], constant int &n_out1 [[buffer(9)]],                     \
      device const uchar *weights2 [[buffer(10)]], device const float *bias2 [[buffer(11)]],        \
      device float *out2 [[buffer(12)]], constant float &scale2 [[buffer(13)]],                     \
      constant int &n_out2 [[buffer(14)]]
#define RESIDUAL 16  // which argument it is
#define LINEAR_MATRIX(i) \
  lr_linear { weights##i, bias##i, out##i, scale##i, n_out##i, LR_GIVEN(5 * i + 1) }

// The matrix of a group, and the number of the group in it; each group has `rows` of a matrix.
LR_INLINE lr_linear lr_linear_of_group(lr_linear first, lr_linear second, lr_linear third, int rows, thread int& group) {
  const int groups0 = (first.n_out + rows - 1) / rows, groups1 = (second.n_out + rows - 1) / rows;
  if (SIDES == 2 || group < groups0) return first;
  group -= groups0;
  if (group < groups1) return second;
  group -= groups1;
  return third;
}

LR_INLINE float lr_times_sigmoid(float x, float slope) { return x / (1.f + lr_exp(-slope * x)); }
LR_INLINE float lr_activated(float gate, float up) {
#if ACT == 1
  return lr_times_sigmoid(gate, 1.f) * up;
#elif ACT == 2  // x/2 * (1 + tanh u) = x * sigmoid(2u), u = sqrt(2 / pi) * (x + 0.044715 x^3)
  return gate / (1.f + lr_exp(-1.5957691f * fma(gate * gate * 0.044715f, gate, gate))) * up;
#elif ACT == 3  // comparisons let a NaN through
  const float limited = gate > 7.f ? 7.f : gate, bounded = up > 7.f ? 7.f : up < -7.f ? -7.f : up;
  return lr_times_sigmoid(limited, 1.702f) * (bounded + 1.f);
#else
  const float positive = up < 0.f ? 0.f : up;
  return ACT == 4 ? positive * positive : up;
#endif
}

LR_INLINE float lr_biased(lr_linear to, int n, float sum) {
  const float y = sum * to.scale;
  return to.has_bias ? y + to.bias[n] : y;
}

// `gate` is read where a gate was computed beside this number.
LR_INLINE void lr_store(lr_linear to, int m, int n, float biased, float gate, device const float* residual, bool has_residual,
                        float out_scale) {
  const long at = long(m) * to.n_out + n;
  const bool waits = ACT >= 1 && ACT <= 3 && SIDES == 1;
  const float y = lr_activated(waits ? to.out[at] : gate, biased);
  to.out[at] = has_residual ? fma(y, out_scale, residual[at]) : y * out_scale;
}

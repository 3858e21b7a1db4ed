// What the kernels of a linear share: which matrix a block has, and what becomes of a sum.
//
// One launch takes up to three matrices that read the same x (the others have no rows), or with SIDES 2 a gate and an up:
// then a block has the same rows of both. ACT: 0 none, 1 silu, 2 gelu by tanh, 3 silu clamped (gpt-oss), 4 max(0, y)².
// out[m][n] = residual[m][n] + out_scale · (scale · sum + bias[n]); with a gate act(gate) · (…) instead of the bracket,
// and a gate that no block has beside it waits in `out`.
#pragma once
#include "device.cuh"
#ifndef ACT
#define ACT 0
#endif
#ifndef SIDES
#define SIDES 1
#endif
#define N_SEGMENTS 8  // of consecutive columns; their sums are added in ascending order, in every kernel

struct lr_linear {
  const uint8_t* weights;
  const float* bias;
  float* out;
  float scale;
  int n_out;
};
#define LINEAR_MATRICES                                                                                          \
  const uint8_t *weights0, const float *bias0, float *out0, float scale0, int n_out0, const uint8_t *weights1,    \
      const float *bias1, float *out1, float scale1, int n_out1, const uint8_t *weights2, const float *bias2,      \
      float *out2, float scale2, int n_out2
#define LINEAR_LIST                                                                           \
  {{weights0, bias0, out0, scale0, n_out0}, {weights1, bias1, out1, scale1, n_out1}, \
   {weights2, bias2, out2, scale2, n_out2}}

// The matrix of this block, and the number of the block in it; each block has `rows` of a matrix.
LR_INLINE lr_linear lr_linear_of_block(const lr_linear (&all)[3], int rows, int& block) {
  block = blockIdx.x;
  const int blocks0 = (all[0].n_out + rows - 1) / rows, blocks1 = (all[1].n_out + rows - 1) / rows;
  if (SIDES == 2 || block < blocks0) return all[0];
  block -= blocks0;
  if (block < blocks1) return all[1];
  block -= blocks1;
  return all[2];
}

LR_INLINE float lr_times_sigmoid(float x, float slope) { return x / (1.f + lr_exp(-slope * x)); }
LR_INLINE float lr_activated(float gate, float up) {
#if ACT == 1
  return lr_times_sigmoid(gate, 1.f) * up;
#elif ACT == 2  // x/2 · (1 + tanh u) = x · sigmoid(2u), u = sqrt(2 / pi) · (x + 0.044715 x³)
  return gate / (1.f + lr_exp(-1.5957691f * __fmaf_rn(gate * gate * 0.044715f, gate, gate))) * up;
#elif ACT == 3  // comparisons let a NaN through
  const float limited = gate > 7.f ? 7.f : gate, bounded = up > 7.f ? 7.f : up < -7.f ? -7.f : up;
  return lr_times_sigmoid(limited, 1.702f) * (bounded + 1.f);
#else
  const float positive = up < 0.f ? 0.f : up;
  return ACT == 4 ? positive * positive : up;
#endif
}

LR_INLINE float lr_biased(const lr_linear& to, int n, float sum) {
  const float y = sum * to.scale;
  return to.bias ? y + __ldg(to.bias + n) : y;
}

// `gate`: null, or where the gate of this number is.
LR_INLINE void lr_store(const lr_linear& to, int m, int n, float biased, const float* gate, const float* residual, float out_scale) {
  const int64_t at = (int64_t)m * to.n_out + n;
  const bool waits = ACT >= 1 && ACT <= 3 && !gate;
  const float y = lr_activated(waits ? to.out[at] : gate ? *gate : 0.f, biased) * out_scale;
  to.out[at] = residual ? residual[at] + y : y;
}

// Number n of row m by its totals: of a matrix, or with SIDES 2 of a gate and the `up` beside it.
LR_INLINE void lr_store_totals(const lr_linear& of, const lr_linear& up, int m, int n, const float (&total)[SIDES],
                               const float* residual, float out_scale) {
#if SIDES == 2
  const float gate = lr_biased(of, n, total[0]);
  lr_store(of, m, n, lr_biased(up, n, total[1]), &gate, residual, out_scale);
#else
  lr_store(of, m, n, lr_biased(of, n, total[0]), nullptr, residual, out_scale);
#endif
}

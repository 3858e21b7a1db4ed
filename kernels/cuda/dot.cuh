// Tiles of weights times rows of x in int8, to float sums; the same operations in the same order for every sum.
//
// x is quantised per 32 columns. Codes [rows][tiles · 64], in each run of 64 columns so ordered that lane t's 16 bytes are
// its columns 4t … 4t + 3 of the four runs of 16. Groups [2 · tiles][rows rounded up to 8]: {bits of the scale, sum of
// the codes}. (localrun/backends/gpu/q8.py)
#pragma once
#include "layouts.cuh"

// Dot products start from 1.5 · 2^23 as a float has it: what they end with is that number plus the product, exactly.
#define DOT_START 0x4b400000
LR_INLINE float lr_dot_value(int dot) {
  constexpr float unit = 1.f / (1 << CODE_SHIFT);
  return __fmaf_rn(__int_as_float(dot), unit, -12582912.f * unit);
}

LR_INLINE float lr_add_dot(float sum, int dot, float scale, float minimum, float x_scale, int x_sum) {
  sum = __fmaf_rn(lr_dot_value(dot), scale * x_scale, sum);
  return HAS_MINIMA ? __fmaf_rn(minimum, x_scale * (float)x_sum, sum) : sum;
}

// sum[2h + m] += row g + 8h of the weights · row 2t + m of x, over a tile. `groups`: of both rows, for 32 columns each.
LR_INLINE void lr_multiply(float (&sum)[4], const lr_weights& w, const uint4& x, const int4 (&groups)[2]) {
  const uint32_t xs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int q = 0; q < N_GROUPS; q++) {
    const int4 of = groups[q * GROUP / 32];
    const float x_scale[2] = {__int_as_float(of.x), __int_as_float(of.z)};
    int dot[4] = {DOT_START, DOT_START, DOT_START, DOT_START};
#if GROUP == 32
    const uint32_t a[4] = {w.codes[4 * q], w.codes[4 * q + 1], w.codes[4 * q + 2], w.codes[4 * q + 3]};
    const uint32_t b[2] = {xs[2 * q], xs[2 * q + 1]};
    lr_mma_s8(dot, a, b);
    const int x_sum[2] = {of.y, of.w};
#else
    const uint32_t a[2] = {w.codes[2 * q], w.codes[2 * q + 1]}, b[1] = {xs[q]};
    lr_mma_s8_k16(dot, a, b);
    int sums[4] = {0, 0, 0, 0};
    if (HAS_MINIMA) {  // sums of 16 codes are a product with ones
      const uint32_t ones[2] = {0x01010101u, 0x01010101u};
      lr_mma_s8_k16(sums, ones, b);
    }
    const int x_sum[2] = {sums[0], sums[1]};
#endif
#pragma unroll
    for (int j = 0; j < 4; j++)
      sum[j] = lr_add_dot(sum[j], dot[j], w.scale[q][j / 2], w.minimum[q][j / 2], x_scale[j % 2], x_sum[j % 2]);
  }
}

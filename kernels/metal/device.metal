// What every kernel may use beyond plain MSL. Multiply-adds are written as fma() and nothing is left to contraction: the same
// operations in the same order on every GPU and on the emulator.
//
//   LR_THREADS(n)     before a kernel: launches have at most n threads a threadgroup, so registers are kept for as many
//   LR_GIVEN(i)       whether argument i is no null pointer: the device binds some tensor for one, and `given` tells
//   lr_low_half lr_high_half     of a word with two fp16 numbers, as floats
//   lr_exp2 lr_exp    the same bits everywhere
//   LR_FAMILY         7 (M1), 8 (M2), 9 (M3, M4), 10 (M5): what needs more than 7 is a variant
#pragma once
#include <metal_stdlib>
#pragma METAL fp contract(off)
using namespace metal;

#define LR_INLINE static inline
#define LR_THREADS(n) [[max_total_threads_per_threadgroup(n)]]
#define LR_GIVEN(i) ((given >> (i) & 1u) != 0u)

LR_INLINE float lr_low_half(uint pair) { return float(as_type<half>(ushort(pair & 0xffffu))); }
LR_INLINE float lr_high_half(uint pair) { return float(as_type<half>(ushort(pair >> 16))); }

// 2^f * 2^n for f in [-0.5, 0.5]: 1 where f is 0, else within an ulp. n from -126 to 128; 128 is infinity.
LR_INLINE float lr_scaled_exp2(float f, int n) {
  float p = 1.535336202e-4f;
  p = fma(p, f, 1.339887455e-3f);
  p = fma(p, f, 9.618437358e-3f);
  p = fma(p, f, 5.550332471e-2f);
  p = fma(p, f, 2.402264791e-1f);
  p = fma(p, f, 6.931472029e-1f);
  p = fma(p, f, 1.f);
  return p * as_type<float>((n + 127) << 23);
}
// 0 below 2^-126 (and at -infinity), infinity from 127.5 on, 1 at 0, NaN of NaN.
LR_INLINE float lr_exp2(float x) {
  const float bounded = fmin(fmax(x, -126.f), 128.f), rounded = rint(bounded);
  const float y = lr_scaled_exp2(bounded - rounded, int(rounded));
  return x < -126.f ? 0.f : x == x ? y : x;
}
// 0 below 2^-126, infinity from 88.4 on, 1 at 0, NaN of NaN.
LR_INLINE float lr_exp(float x) {
  const float bounded = fmin(fmax(x, -88.f), 89.f), rounded = rint(bounded * 1.442695041f);
  // x * log2(e) - rounded with what the first constant lacks, so that large x lose nothing.
  const float f = fma(bounded, 1.925963033e-8f, fma(bounded, 1.442695022f, -rounded));
  const float y = lr_scaled_exp2(f, int(rounded));
  return x < -87.f ? 0.f : x == x ? y : x;
}

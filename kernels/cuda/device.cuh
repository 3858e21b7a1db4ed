// What every kernel may use beyond plain CUDA C++. NVRTC compiles kernels with no include path, so types are spelled out in
// ptx.cuh.
//
//   lr_half_to_float lr_float_to_half lr_pack_half2      fp16 as uint16_t; two in a register, the first low
//   lr_fma_half2(a, b, c)                                a · b + c of two pairs of fp16, each rounded once
//   lr_bf16_to_float lr_float_to_bf16 lr_pack_bf16x2     bf16 likewise
//   lr_low_half lr_high_half                             of a register with two fp16 numbers, as floats
//   lr_exp2 lr_exp                                       the same bits on every GPU and on the emulator
//   lr_dp4a(a, b, c)                                     c + four products of signed bytes
//   lr_mma_s8 lr_mma_s8u8 (c[4], a[4], b[2])             c += a · b, 16 × 8 × 32; u8: b is unsigned
//   lr_mma_s8_k16 (c[4], a[2], b[1])                     16 × 8 × 16
//   lr_mma_f16 lr_mma_bf16 (c[4], a[4], b[2])            16 × 8 × 16, sums in float
//   lr_ldmatrix lr_ldmatrix_trans (r[4], row)            fragments from shared memory
//   lr_copy_async lr_copy_async_or_zero lr_copy_commit lr_copy_wait<LEFT>   16 bytes to shared memory, later
//   LR_DYNAMIC_SHARED(type, name)                        the shared memory a launch asks for
//   LR_ARCH                                              75, 80, …
//
// __ldg is for weights, which no kernel writes; what another kernel has written is read by __ldcg, past a cache that may hold
// what was there before.
//
// Lane 4g + t of an mma has rows g and g + 8 of a (registers in turn), column g of b, and of c rows g (c[0], c[1]) and
// g + 8 (c[2], c[3]) at columns 2t and 2t + 1. A register has 32 / bits neighbours along k, from (32 / bits) · t on; two
// registers of a (one of b) make 16 bytes of k.
#pragma once
#ifdef LR_EMULATED
#include "cuda.h"
#else
#include "ptx.cuh"
#endif

LR_INLINE uint32_t lr_pack_half2(float low, float high) {
  return (uint32_t)lr_float_to_half(high) << 16 | lr_float_to_half(low);
}
LR_INLINE float lr_low_half(uint32_t pair) { return lr_half_to_float((uint16_t)pair); }
LR_INLINE float lr_high_half(uint32_t pair) { return lr_half_to_float((uint16_t)(pair >> 16)); }
LR_INLINE float lr_bf16_to_float(uint16_t b) { return __uint_as_float((uint32_t)b << 16); }
LR_INLINE uint16_t lr_float_to_bf16(float f) {  // to nearest, ties to even; a NaN stays one
  const uint32_t bits = __float_as_uint(f);
  return (uint16_t)((f != f ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
LR_INLINE uint32_t lr_pack_bf16x2(float low, float high) {
  return (uint32_t)lr_float_to_bf16(high) << 16 | lr_float_to_bf16(low);
}

// 2^f · 2^n for f in [-0.5, 0.5]: 1 where f is 0, else within an ulp. n from -126 to 128; 128 is infinity.
LR_INLINE float lr_scaled_exp2(float f, int n) {
  float p = 1.535336202e-4f;
  p = __fmaf_rn(p, f, 1.339887455e-3f);
  p = __fmaf_rn(p, f, 9.618437358e-3f);
  p = __fmaf_rn(p, f, 5.550332471e-2f);
  p = __fmaf_rn(p, f, 2.402264791e-1f);
  p = __fmaf_rn(p, f, 6.931472029e-1f);
  p = __fmaf_rn(p, f, 1.f);
  return p * __int_as_float((n + 127) << 23);
}
// 0 below 2^-126 (and at -infinity), infinity from 127.5 on, 1 at 0, NaN of NaN.
LR_INLINE float lr_exp2(float x) {
  const float bounded = fminf(fmaxf(x, -126.f), 128.f), rounded = rintf(bounded);
  const float y = lr_scaled_exp2(bounded - rounded, (int)rounded);
  return x < -126.f ? 0.f : x == x ? y : x;
}
// 0 below 2^-126, infinity from 88.4 on, 1 at 0, NaN of NaN.
LR_INLINE float lr_exp(float x) {
  const float bounded = fminf(fmaxf(x, -88.f), 89.f), rounded = rintf(bounded * 1.442695041f);
  // x·log2(e) - rounded with what the first constant lacks, so that large x lose nothing.
  const float f = __fmaf_rn(bounded, 1.925963033e-8f, __fmaf_rn(bounded, 1.442695022f, -rounded));
  const float y = lr_scaled_exp2(f, (int)rounded);
  return x < -87.f ? 0.f : x == x ? y : x;
}

#if LR_ARCH >= 80
LR_INLINE void lr_mma_s8(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { lr_m16n8k32_s8(c, a, b); }
LR_INLINE void lr_mma_s8u8(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { lr_m16n8k32_s8u8(c, a, b); }
LR_INLINE void lr_mma_s8_k16(int (&c)[4], const uint32_t (&a)[2], const uint32_t (&b)[1]) { lr_m16n8k16_s8(c, a, b); }
LR_INLINE void lr_mma_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { lr_m16n8k16_f16(c, a, b); }
LR_INLINE void lr_mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { lr_m16n8k16_bf16(c, a, b); }
#else
#include "turing.cuh"
#endif

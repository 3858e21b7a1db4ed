// The sixteen lanes of simd.h in four NEON registers, with the dot product of Armv8.2, and where there is one the
// product of small matrices of Armv8.6.
#pragma once
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define LR_INLINE static inline __attribute__((always_inline))

namespace {

struct F {
  float32x4_t v[4];
};
struct I {
  int32x4_t v[4];
};
struct B {
  uint8x16_t v[4];
};
typedef int8x16_t X;

struct MicroTile {
  int tokens, groups;
};
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define LR_HAS_I8MM 1
constexpr MicroTile kMicroTiles[] = {{1, 1}, {2, 1}, {4, 1}};  // codes are ordered once for all tokens
#else
#define LR_HAS_I8MM 0
constexpr MicroTile kMicroTiles[] = {{1, 1}, {2, 1}};  // by tokens: as many sums as registers hold
#endif
const int kSignedZero = 0;
const int kMaxProbabilityCode = 254, kProbabilityZero = 127;  // codes of weights, and what dot_probabilities takes less
const bool kHasBf16 = false;

LR_INLINE F f_set(float x) {
  const float32x4_t v = vdupq_n_f32(x);
  return {{v, v, v, v}};
}
LR_INLINE F f_zero() { return f_set(0.0f); }
LR_INLINE F f_load(const float* p) { return {{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}}; }
LR_INLINE void f_store(float* p, F a) {
  for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, a.v[i]);
}
LR_INLINE F f_load_or(const float* p, int n, float other) {
  if (n >= 16) return f_load(p);
  float lanes[16];
  f_store(lanes, f_set(other));
  memcpy(lanes, p, (size_t)n * 4);
  return f_load(lanes);
}
LR_INLINE F f_load_n(const float* p, int n) { return f_load_or(p, n, 0.0f); }
LR_INLINE void f_store_n(float* p, F a, int n) {
  float lanes[16];
  f_store(n >= 16 ? p : lanes, a);
  if (n < 16) memcpy(p, lanes, (size_t)n * 4);
}

// One instruction on each register of one, two or three arguments.
#define LR_NEON_1(result, name, A, call) \
  LR_INLINE result name(A a) { return {{call(a.v[0]), call(a.v[1]), call(a.v[2]), call(a.v[3])}}; }
#define LR_NEON_2(result, name, A, call)                                                               \
  LR_INLINE result name(A a, A b) {                                                                    \
    return {{call(a.v[0], b.v[0]), call(a.v[1], b.v[1]), call(a.v[2], b.v[2]), call(a.v[3], b.v[3])}}; \
  }
LR_NEON_2(F, f_add, F, vaddq_f32)
LR_NEON_2(F, f_sub, F, vsubq_f32)
LR_NEON_2(F, f_mul, F, vmulq_f32)
LR_NEON_2(F, f_div, F, vdivq_f32)
LR_NEON_2(F, f_min, F, vminq_f32)
LR_NEON_2(F, f_max, F, vmaxq_f32)
LR_NEON_2(I, i_add, I, vaddq_s32)
LR_NEON_2(I, i_sub, I, vsubq_s32)
LR_NEON_2(I, i_and, I, vandq_s32)
LR_NEON_2(I, i_max, I, vmaxq_s32)
LR_NEON_1(F, f_from_i, I, vcvtq_f32_s32)
LR_NEON_1(F, f_of_bits, I, vreinterpretq_f32_s32)
LR_NEON_1(I, i_of_bits, F, vreinterpretq_s32_f32)
LR_NEON_1(I, i_round, F, vcvtnq_s32_f32)
#undef LR_NEON_1
#undef LR_NEON_2

LR_INLINE F f_fma(F a, F b, F c) {
  for (int i = 0; i < 4; i++) c.v[i] = vfmaq_f32(c.v[i], a.v[i], b.v[i]);
  return c;
}
LR_INLINE F f_where_greater(F a, F b, F v) {
  for (int i = 0; i < 4; i++)
    v.v[i] = vreinterpretq_f32_u32(vandq_u32(vcgtq_f32(a.v[i], b.v[i]), vreinterpretq_u32_f32(v.v[i])));
  return v;
}
LR_INLINE F f_unless_greater(F a, F b, F v) {
  for (int i = 0; i < 4; i++)
    v.v[i] = vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(v.v[i]), vcgtq_f32(a.v[i], b.v[i])));
  return v;
}
LR_INLINE F f_from_fp16(const void* p) {
  F a;
  for (int i = 0; i < 4; i++) a.v[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t*)p + 4 * i)));
  return a;
}

LR_INLINE I i_set(int32_t x) {
  const int32x4_t v = vdupq_n_s32(x);
  return {{v, v, v, v}};
}
LR_INLINE I i_zero() { return i_set(0); }
LR_INLINE I i_load(const void* p) {
  const int32_t* q = (const int32_t*)p;
  return {{vld1q_s32(q), vld1q_s32(q + 4), vld1q_s32(q + 8), vld1q_s32(q + 12)}};
}
LR_INLINE I i_widen(int16x8_t low, int16x8_t high) {
  return {{vmovl_s16(vget_low_s16(low)), vmovl_s16(vget_high_s16(low)), vmovl_s16(vget_low_s16(high)),
           vmovl_s16(vget_high_s16(high))}};
}
LR_INLINE I i_load_u8(const void* p) {
  const uint8x16_t v = vld1q_u8((const uint8_t*)p);
  return i_widen(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(v))), vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(v))));
}
LR_INLINE F f_from_u8(const void* p) { return f_from_i(i_load_u8(p)); }
LR_INLINE F f_from_i8(const void* p) {
  const int8x16_t v = vld1q_s8((const int8_t*)p);
  return f_from_i(i_widen(vmovl_s8(vget_low_s8(v)), vmovl_s8(vget_high_s8(v))));
}
template <int n> LR_INLINE I i_shl(I a) {
  for (int i = 0; i < 4; i++) a.v[i] = vshlq_n_s32(a.v[i], n);
  return a;
}
LR_INLINE int32_t i_reduce_sum(I a) { return vaddvq_s32(vaddq_s32(vaddq_s32(a.v[0], a.v[1]), vaddq_s32(a.v[2], a.v[3]))); }
LR_INLINE int32_t i_reduce_max(I a) { return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.v[0], a.v[1]), vmaxq_s32(a.v[2], a.v[3]))); }
LR_INLINE void i_store_i8(int8_t* p, I a) {
  const int16x8_t low = vcombine_s16(vqmovn_s32(a.v[0]), vqmovn_s32(a.v[1]));
  const int16x8_t high = vcombine_s16(vqmovn_s32(a.v[2]), vqmovn_s32(a.v[3]));
  vst1q_s8(p, vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
}

LR_INLINE void i_store_u8(uint8_t* p, I a) {  // 0 to 255
  const uint16x8_t low = vcombine_u16(vqmovun_s32(a.v[0]), vqmovun_s32(a.v[1]));
  const uint16x8_t high = vcombine_u16(vqmovun_s32(a.v[2]), vqmovun_s32(a.v[3]));
  vst1q_u8(p, vcombine_u8(vqmovn_u16(low), vqmovn_u16(high)));
}

// The sum of the lanes by one fixed tree: i + (i + 8), then + 4, + 2, + 1.
LR_INLINE float f_reduce_sum(F a) {
  const float32x4_t b = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  const float32x2_t c = vadd_f32(vget_low_f32(b), vget_high_f32(b));
  return vget_lane_f32(c, 0) + vget_lane_f32(c, 1);
}
LR_INLINE float f_reduce_max(F a) {  // none of them a NaN
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.v[0], a.v[1]), vmaxq_f32(a.v[2], a.v[3])));
}

LR_INLINE B b_load(const void* p) {
  const uint8_t* q = (const uint8_t*)p;
  return {{vld1q_u8(q), vld1q_u8(q + 16), vld1q_u8(q + 32), vld1q_u8(q + 48)}};
}
LR_INLINE B b_low4(B a) {
  for (int i = 0; i < 4; i++) a.v[i] = vandq_u8(a.v[i], vdupq_n_u8(15));
  return a;
}
LR_INLINE B b_high4(B a) {
  for (int i = 0; i < 4; i++) a.v[i] = vshrq_n_u8(a.v[i], 4);
  return a;
}
LR_INLINE B b_signed(B a) { return a; }
LR_INLINE B b_table(const int8_t* table) {
  const uint8x16_t v = vreinterpretq_u8_s8(vld1q_s8(table));
  return {{v, v, v, v}};
}
LR_INLINE B b_lookup(B table, B codes) {
  for (int i = 0; i < 4; i++) codes.v[i] = vqtbl1q_u8(table.v[i], codes.v[i]);
  return codes;
}
template <int by> LR_INLINE B b_join(B code, B high, uint8_t mask) {
  for (int i = 0; i < 4; i++) {
    uint8x16_t moved = high.v[i];
    if constexpr (by > 0) moved = vshlq_n_u8(moved, by);
    if constexpr (by < 0) moved = vshrq_n_u8(moved, -by);
    code.v[i] = vorrq_u8(code.v[i], vandq_u8(moved, vdupq_n_u8(mask)));
  }
  return code;
}

LR_INLINE X x_load(const int8_t* p) {
  int32_t four;
  memcpy(&four, p, 4);
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
LR_INLINE I dot_signed(I c, B codes, X x) {
  for (int i = 0; i < 4; i++) c.v[i] = vdotq_s32(c.v[i], vreinterpretq_s8_u8(codes.v[i]), x);
  return c;
}
LR_INLINE I dot_unsigned(I c, B codes, X x) { return dot_signed(c, codes, x); }                   // codes of at most 127
LR_INLINE I dot_probabilities(I c, X weights, B codes) { return dot_signed(c, codes, weights); }  // signed codes
LR_INLINE I dot_probabilities_4bit(I c, X weights, B codes) { return dot_signed(c, codes, weights); }  // of at most 15

#if LR_HAS_I8MM
// Sums of two tokens: register i holds [row 2i of the first, of the second, row 2i + 1 of the first, of the second].
struct TwoTokens {
  int32x4_t v[8];
};

// Eight columns of 16 rows as that product takes them, two rows a register; `a` has the first four.
struct RowPairs {
  int8x16_t v[8];
};
LR_INLINE RowPairs row_pairs(B a, B b) {
  RowPairs pairs;
  for (int i = 0; i < 4; i++) {
    const uint32x4_t first = vreinterpretq_u32_u8(a.v[i]), second = vreinterpretq_u32_u8(b.v[i]);
    pairs.v[2 * i] = vreinterpretq_s8_u32(vzip1q_u32(first, second));
    pairs.v[2 * i + 1] = vreinterpretq_s8_u32(vzip2q_u32(first, second));
  }
  return pairs;
}
LR_INLINE TwoTokens two_zeros() {
  const int32x4_t v = vdupq_n_s32(0);
  return {{v, v, v, v, v, v, v, v}};
}
// Eight columns of two tokens, whose codes lie `stride` bytes apart.
LR_INLINE TwoTokens dot_pairs(TwoTokens c, const RowPairs& rows, const int8_t* x, int stride) {
  const int8x16_t both = vcombine_s8(vld1_s8(x), vld1_s8(x + stride));
  for (int i = 0; i < 8; i++) c.v[i] = vmmlaq_s32(c.v[i], rows.v[i], both);
  return c;
}
LR_INLINE I first_token(const TwoTokens& c) {
  return {{vuzp1q_s32(c.v[0], c.v[1]), vuzp1q_s32(c.v[2], c.v[3]), vuzp1q_s32(c.v[4], c.v[5]), vuzp1q_s32(c.v[6], c.v[7])}};
}
LR_INLINE I second_token(const TwoTokens& c) {
  return {{vuzp2q_s32(c.v[0], c.v[1]), vuzp2q_s32(c.v[2], c.v[3]), vuzp2q_s32(c.v[4], c.v[5]), vuzp2q_s32(c.v[6], c.v[7])}};
}
#endif

LR_INLINE F dot_bf16(F c, const void*, const uint16_t*) { return c; }
LR_INLINE void f_store_bf16(uint16_t*, F) {}

}  // namespace

// The sixteen lanes of simd.h in one AVX-512 register.
#pragma once
#include <immintrin.h>
#include <stdint.h>

#define LR_INLINE static inline __attribute__((always_inline))

namespace {

typedef __m512 F;
typedef __m512i I;
typedef __m512i B;
typedef __m512i X;

struct MicroTile {
  int tokens, groups;
};
constexpr MicroTile kMicroTiles[] = {
    {1, 2}, {2, 2}, {4, 2}, {6, 2}, {8, 2}};                // by tokens; the sums of the last are in memory
const int kSignedZero = 128;                                // what b_signed adds to a signed code
const int kMaxProbabilityCode = 255, kProbabilityZero = 0;  // codes of weights, and what dot_probabilities takes less
const bool kHasBf16 = true;

LR_INLINE __mmask16 first_lanes(int n) { return (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1); }

LR_INLINE F f_zero() { return _mm512_setzero_ps(); }
LR_INLINE F f_set(float x) { return _mm512_set1_ps(x); }
LR_INLINE F f_load(const float* p) { return _mm512_loadu_ps(p); }
LR_INLINE F f_load_n(const float* p, int n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
LR_INLINE F f_load_or(const float* p, int n, float other) {
  return _mm512_mask_loadu_ps(_mm512_set1_ps(other), first_lanes(n), p);
}
LR_INLINE void f_store(float* p, F v) { _mm512_storeu_ps(p, v); }
LR_INLINE void f_store_n(float* p, F v, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }
LR_INLINE F f_add(F a, F b) { return _mm512_add_ps(a, b); }
LR_INLINE F f_sub(F a, F b) { return _mm512_sub_ps(a, b); }
LR_INLINE F f_mul(F a, F b) { return _mm512_mul_ps(a, b); }
LR_INLINE F f_div(F a, F b) { return _mm512_div_ps(a, b); }
LR_INLINE F f_fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
// Where one of the two is a NaN the second is taken, or a NaN: here and in the other units.
LR_INLINE F f_min(F a, F b) { return _mm512_min_ps(a, b); }
LR_INLINE F f_max(F a, F b) { return _mm512_max_ps(a, b); }
LR_INLINE F f_where_greater(F a, F b, F v) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), v); }
LR_INLINE F f_unless_greater(F a, F b, F v) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_NGT_UQ), v); }
LR_INLINE F f_from_i(I v) { return _mm512_cvtepi32_ps(v); }
LR_INLINE F f_of_bits(I v) { return _mm512_castsi512_ps(v); }
LR_INLINE F f_from_fp16(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
LR_INLINE F f_from_u8(const void* p) { return f_from_i(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p))); }
LR_INLINE F f_from_i8(const void* p) { return f_from_i(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p))); }

LR_INLINE I i_zero() { return _mm512_setzero_si512(); }
LR_INLINE I i_set(int32_t x) { return _mm512_set1_epi32(x); }
LR_INLINE I i_load(const void* p) { return _mm512_loadu_si512(p); }
LR_INLINE I i_load_u8(const void* p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)); }
LR_INLINE I i_add(I a, I b) { return _mm512_add_epi32(a, b); }
LR_INLINE I i_sub(I a, I b) { return _mm512_sub_epi32(a, b); }
LR_INLINE I i_and(I a, I b) { return _mm512_and_si512(a, b); }
LR_INLINE I i_max(I a, I b) { return _mm512_max_epi32(a, b); }
template <int n> LR_INLINE I i_shl(I a) { return _mm512_slli_epi32(a, n); }
LR_INLINE I i_of_bits(F v) { return _mm512_castps_si512(v); }
LR_INLINE I i_round(F v) { return _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
LR_INLINE int32_t i_reduce_sum(I v) { return _mm512_reduce_add_epi32(v); }
LR_INLINE int32_t i_reduce_max(I v) { return _mm512_reduce_max_epi32(v); }
LR_INLINE void i_store_i8(int8_t* p, I v) { _mm_storeu_si128((__m128i*)p, _mm512_cvtsepi32_epi8(v)); }
LR_INLINE void i_store_u8(uint8_t* p, I v) { _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(v)); }  // 0 to 255

// The sum of the lanes by one fixed tree: i + (i + 8), then + 4, + 2, + 1.
LR_INLINE float f_reduce_sum(F v) {
  const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

// The max lane, none of them a NaN.
LR_INLINE float f_reduce_max(F v) { return _mm512_reduce_max_ps(v); }

LR_INLINE B b_load(const void* p) { return _mm512_loadu_si512(p); }
LR_INLINE void b_store(void* p, B v) { _mm512_storeu_si512(p, v); }
template <int n> LR_INLINE B b_take(B v) { return n ? _mm512_sub_epi8(v, _mm512_set1_epi8((char)n)) : v; }
LR_INLINE B b_low4(B v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
LR_INLINE B b_high4(B v) { return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15)); }
LR_INLINE B b_signed(B v) { return _mm512_xor_si512(v, _mm512_set1_epi8(-128)); }
LR_INLINE B b_table(const int8_t* table) {
  return b_signed(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)table)));
}
LR_INLINE B b_lookup(B table, B codes) { return _mm512_shuffle_epi8(table, codes); }
// code | (high moved left by `by` bits, right if negative) & mask
template <int by> LR_INLINE B b_join(B code, B high, uint8_t mask) {
  B moved = high;
  if constexpr (by > 0) moved = _mm512_slli_epi16(high, by);
  if constexpr (by < 0) moved = _mm512_srli_epi16(high, -by);
  return _mm512_ternarylogic_epi32(code, moved, _mm512_set1_epi8((char)mask), 0xf8);
}

LR_INLINE X x_load(const int8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return _mm512_set1_epi32(four);
}
LR_INLINE I dot_unsigned(I c, B codes, X x) { return _mm512_dpbusd_epi32(c, codes, x); }  // codes of at most 127
LR_INLINE I dot_signed(I c, B codes, X x) { return _mm512_dpbusd_epi32(c, codes, x); }    // codes from b_signed
LR_INLINE I dot_probabilities(I c, X weights, B codes) { return _mm512_dpbusd_epi32(c, weights, codes); }  // signed codes
LR_INLINE I dot_probabilities_4bit(I c, X weights, B codes) {
  return dot_probabilities(c, weights, codes);
}  // of at most 15

// 16 rows of 2 bf16 codes times a pair of bf16 codes
LR_INLINE F dot_bf16(F c, const void* w, const uint16_t* x) {
  int32_t two;
  __builtin_memcpy(&two, x, 4);
  return _mm512_dpbf16_ps(c, (__m512bh)_mm512_loadu_si512(w), (__m512bh)_mm512_set1_epi32(two));
}
LR_INLINE void f_store_bf16(uint16_t* p, F v) { _mm256_storeu_si256((__m256i*)p, (__m256i)_mm512_cvtneps_pbh(v)); }

}  // namespace

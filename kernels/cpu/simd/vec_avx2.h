// The sixteen lanes of simd.h in two AVX2 registers; with AVX-VNNI its dot product is the instruction's.
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define LR_INLINE static inline __attribute__((always_inline))

namespace {

struct F {
  __m256 lo, hi;
};
struct I {
  __m256i lo, hi;
};
struct B {
  __m256i lo, hi;
};
typedef __m256i X;

struct MicroTile {
  int tokens, groups;
};
constexpr MicroTile kMicroTiles[] = {{1, 2}, {2, 2}};  // by tokens: as many sums as registers hold
#if defined(__AVXVNNI__)
const int kSignedZero = 128;
const int kMaxProbabilityCode = 255, kProbabilityZero = 0;  // codes of weights, and what dot_probabilities takes less
#else
const int kSignedZero = 0;
const int kMaxProbabilityCode = 254, kProbabilityZero = 127;
#endif
const bool kHasBf16 = false;

LR_INLINE __m256i first_lanes(int n) {  // of 8
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

LR_INLINE F f_zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
LR_INLINE F f_set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
LR_INLINE F f_load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
LR_INLINE F f_load_or(const float* p, int n, float other) {
  const __m256i a = first_lanes(n), b = first_lanes(n - 8);
  const __m256 o = _mm256_set1_ps(other);
  return {_mm256_blendv_ps(o, _mm256_maskload_ps(p, a), _mm256_castsi256_ps(a)),
          _mm256_blendv_ps(o, _mm256_maskload_ps(p + 8, b), _mm256_castsi256_ps(b))};
}
LR_INLINE F f_load_n(const float* p, int n) {
  return {_mm256_maskload_ps(p, first_lanes(n)), _mm256_maskload_ps(p + 8, first_lanes(n - 8))};
}
LR_INLINE void f_store(float* p, F v) {
  _mm256_storeu_ps(p, v.lo);
  _mm256_storeu_ps(p + 8, v.hi);
}
LR_INLINE void f_store_n(float* p, F v, int n) {
  _mm256_maskstore_ps(p, first_lanes(n), v.lo);
  _mm256_maskstore_ps(p + 8, first_lanes(n - 8), v.hi);
}
LR_INLINE F f_add(F a, F b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
LR_INLINE F f_sub(F a, F b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
LR_INLINE F f_mul(F a, F b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
LR_INLINE F f_div(F a, F b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
LR_INLINE F f_fma(F a, F b, F c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
LR_INLINE F f_min(F a, F b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
LR_INLINE F f_max(F a, F b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
LR_INLINE F f_where_greater(F a, F b, F v) {
  return {_mm256_and_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ), v.lo),
          _mm256_and_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ), v.hi)};
}
LR_INLINE F f_unless_greater(F a, F b, F v) {
  return {_mm256_and_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_NGT_UQ), v.lo),
          _mm256_and_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_NGT_UQ), v.hi)};
}
LR_INLINE F f_from_i(I v) { return {_mm256_cvtepi32_ps(v.lo), _mm256_cvtepi32_ps(v.hi)}; }
LR_INLINE F f_of_bits(I v) { return {_mm256_castsi256_ps(v.lo), _mm256_castsi256_ps(v.hi)}; }
LR_INLINE F f_from_fp16(const void* p) {
  const __m128i* h = (const __m128i*)p;
  return {_mm256_cvtph_ps(_mm_loadu_si128(h)), _mm256_cvtph_ps(_mm_loadu_si128(h + 1))};
}

LR_INLINE I i_zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
LR_INLINE I i_set(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
LR_INLINE I i_load(const void* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)p + 1)};
}
LR_INLINE I i_load_u8(const void* p) {
  const __m128i v = _mm_loadu_si128((const __m128i*)p);
  return {_mm256_cvtepu8_epi32(v), _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8))};
}
LR_INLINE F f_from_u8(const void* p) { return f_from_i(i_load_u8(p)); }
LR_INLINE F f_from_i8(const void* p) {
  const __m128i v = _mm_loadu_si128((const __m128i*)p);
  return f_from_i({_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8))});
}
LR_INLINE I i_add(I a, I b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
LR_INLINE I i_sub(I a, I b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
LR_INLINE I i_and(I a, I b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
LR_INLINE I i_max(I a, I b) { return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)}; }
template <int n> LR_INLINE I i_shl(I a) { return {_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)}; }
LR_INLINE I i_of_bits(F v) { return {_mm256_castps_si256(v.lo), _mm256_castps_si256(v.hi)}; }
LR_INLINE I i_round(F v) {
  const int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_cvtps_epi32(_mm256_round_ps(v.lo, mode)), _mm256_cvtps_epi32(_mm256_round_ps(v.hi, mode))};
}
LR_INLINE int32_t i_reduce_sum(I v) {
  const __m256i a = _mm256_add_epi32(v.lo, v.hi);
  __m128i b = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  b = _mm_add_epi32(b, _mm_unpackhi_epi64(b, b));
  return _mm_cvtsi128_si32(b) + _mm_extract_epi32(b, 1);
}
LR_INLINE int32_t i_reduce_max(I v) {
  const __m256i a = _mm256_max_epi32(v.lo, v.hi);
  __m128i b = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  b = _mm_max_epi32(b, _mm_unpackhi_epi64(b, b));
  return _mm_cvtsi128_si32(_mm_max_epi32(b, _mm_shuffle_epi32(b, 1)));
}
LR_INLINE void i_store_i8(int8_t* p, I v) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(v.lo, v.hi), 0xd8);
  _mm_storeu_si128((__m128i*)p, _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

LR_INLINE void i_store_u8(uint8_t* p, I v) {  // 0 to 255
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(v.lo, v.hi), 0xd8);
  _mm_storeu_si128((__m128i*)p, _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

// The sum of the lanes by one fixed tree: i + (i + 8), then + 4, + 2, + 1.
LR_INLINE float f_reduce_sum(F v) {
  const __m256 a = _mm256_add_ps(v.lo, v.hi);
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
LR_INLINE float f_reduce_max(F v) {  // none of them a NaN
  const __m256 a = _mm256_max_ps(v.lo, v.hi);
  const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

LR_INLINE B b_load(const void* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)p + 1)};
}
LR_INLINE void b_store(void* p, B v) {
  _mm256_storeu_si256((__m256i*)p, v.lo);
  _mm256_storeu_si256((__m256i*)p + 1, v.hi);
}
LR_INLINE __m256i b_bytes(int x) { return _mm256_set1_epi8((char)x); }
template <int n> LR_INLINE B b_take(B v) { return {_mm256_sub_epi8(v.lo, b_bytes(n)), _mm256_sub_epi8(v.hi, b_bytes(n))}; }
LR_INLINE B b_low4(B v) { return {_mm256_and_si256(v.lo, b_bytes(15)), _mm256_and_si256(v.hi, b_bytes(15))}; }
LR_INLINE B b_high4(B v) { return b_low4({_mm256_srli_epi16(v.lo, 4), _mm256_srli_epi16(v.hi, 4)}); }
LR_INLINE B b_signed(B v) {
  return {_mm256_xor_si256(v.lo, b_bytes(kSignedZero)), _mm256_xor_si256(v.hi, b_bytes(kSignedZero))};
}
LR_INLINE B b_table(const int8_t* table) {
  const __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)table));
  return b_signed({v, v});
}
LR_INLINE B b_lookup(B table, B codes) {
  return {_mm256_shuffle_epi8(table.lo, codes.lo), _mm256_shuffle_epi8(table.hi, codes.hi)};
}
template <int by> LR_INLINE __m256i b_join_half(__m256i code, __m256i high, uint8_t mask) {
  __m256i moved = high;
  if constexpr (by > 0) moved = _mm256_slli_epi16(high, by);
  if constexpr (by < 0) moved = _mm256_srli_epi16(high, -by);
  return _mm256_or_si256(code, _mm256_and_si256(moved, b_bytes(mask)));
}
template <int by> LR_INLINE B b_join(B code, B high, uint8_t mask) {
  return {b_join_half<by>(code.lo, high.lo, mask), b_join_half<by>(code.hi, high.hi, mask)};
}

LR_INLINE X x_load(const int8_t* p) {
  int32_t four;
  memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}
#if defined(__AVXVNNI__)
LR_INLINE I dot_unsigned(I c, B codes, X x) {
  return {_mm256_dpbusd_avx_epi32(c.lo, codes.lo, x), _mm256_dpbusd_avx_epi32(c.hi, codes.hi, x)};
}
LR_INLINE I dot_signed(I c, B codes, X x) { return dot_unsigned(c, codes, x); }
LR_INLINE I dot_probabilities(I c, X weights, B codes) {  // signed codes
  return {_mm256_dpbusd_avx_epi32(c.lo, weights, codes.lo), _mm256_dpbusd_avx_epi32(c.hi, weights, codes.hi)};
}
LR_INLINE I dot_probabilities_4bit(I c, X weights, B codes) {
  return dot_probabilities(c, weights, codes);
}  // of at most 15
#else
LR_INLINE __m256i dot_half(__m256i c, __m256i codes, __m256i x) {
  return _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, x), _mm256_set1_epi16(1)));
}
// Two products of codes below 128 fit 16 bits; so do two of |code| <= 128 and |x| <= 127: nothing saturates.
LR_INLINE I dot_unsigned(I c, B codes, X x) { return {dot_half(c.lo, codes.lo, x), dot_half(c.hi, codes.hi, x)}; }
LR_INLINE I dot_signed(I c, B codes, X x) {
  return {dot_half(c.lo, _mm256_abs_epi8(codes.lo), _mm256_sign_epi8(x, codes.lo)),
          dot_half(c.hi, _mm256_abs_epi8(codes.hi), _mm256_sign_epi8(x, codes.hi))};
}
LR_INLINE I dot_probabilities(I c, X weights, B codes) { return dot_signed(c, codes, weights); }         // signed codes
LR_INLINE I dot_probabilities_4bit(I c, X weights, B codes) { return dot_unsigned(c, codes, weights); }  // of at most 15
#endif
LR_INLINE F dot_bf16(F c, const void*, const uint16_t*) { return c; }
LR_INLINE void f_store_bf16(uint16_t*, F) {}

}  // namespace

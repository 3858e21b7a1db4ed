// The vocabulary of simd.h where a register has sixteen lanes: AVX-512 with VNNI and bf16.
#pragma once
#include "simd/vec.h"

namespace {

constexpr MicroTile kMicroTiles[] = {
    {1, 4}, {2, 2}, {4, 2},  // by tokens: a single one reads four places of memory; codes of 16 bits take two sums each
};
const int kMaxProbabilityCode = 255, kProbabilityZero = 0;  // codes of weights, and what v_dot_probabilities takes less

LR_INLINE __mmask16 first_lanes(int n) { return (__mmask16)(n >= VL ? 0xffff : (1u << n) - 1); }

template <> LR_ALWAYS_INLINE f32v v_load_n<f32v>(const float* p, int n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
template <> LR_ALWAYS_INLINE f32v v_load_n_or<f32v>(const float* p, int n, float other) {
  return _mm512_mask_loadu_ps(_mm512_set1_ps(other), first_lanes(n), p);
}
LR_INLINE void v_store_n(float* p, f32v v, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }

LR_INLINE f32v v_fma(f32v a, f32v b, f32v c) { return _mm512_fmadd_ps(a, b, c); }
LR_INLINE f64v v_fma(f64v a, f64v b, f64v c) { return _mm512_fmadd_pd(a, b, c); }
LR_INLINE f64v v_min(f64v a, f64v b) { return _mm512_min_pd(a, b); }
LR_INLINE f64v v_max(f64v a, f64v b) { return _mm512_max_pd(a, b); }
LR_INLINE f64v v_load_f64(const float* p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
LR_INLINE uint32_t v_lanes(i32v mask) { return _mm512_movepi32_mask((__m512i)mask); }
LR_INLINE f32v v_min(f32v a, f32v b) { return _mm512_min_ps(a, b); }
LR_INLINE f32v v_max(f32v a, f32v b) { return _mm512_max_ps(a, b); }
LR_INLINE i32v v_max(i32v a, i32v b) { return (i32v)_mm512_max_epi32((__m512i)a, (__m512i)b); }
LR_INLINE i32v v_round(f32v v) { return (i32v)_mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

// The sum of the lanes by one fixed tree: i + (i + 8), then + 4, + 2, + 1.
LR_INLINE float v_reduce_sum(f32v v) {
  const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
LR_INLINE float v_reduce_max(f32v v) { return _mm512_reduce_max_ps(v); }
LR_INLINE int32_t v_reduce_sum(i32v v) { return _mm512_reduce_add_epi32((__m512i)v); }
LR_INLINE int32_t v_reduce_max(i32v v) { return _mm512_reduce_max_epi32((__m512i)v); }

template <> LR_ALWAYS_INLINE i32v v_load_i8<i32v>(const void* p) {
  return (i32v)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p));
}
template <> LR_ALWAYS_INLINE i32v v_load_u8<i32v>(const void* p) {
  return (i32v)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
}
template <> LR_ALWAYS_INLINE f32v v_load_fp16<f32v>(const void* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
}
LR_INLINE f32v v_pick(const float* table, i32v names) {
  return _mm512_permutexvar_ps((__m512i)names, _mm512_loadu_ps(table));
}
// GCC would widen half a vector at a time.
LR_INLINE void v_store_f8_as_fp16(uint16_t* to, const uint8_t* codes) {
  const __m512i moved = _mm512_slli_epi16(_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i*)codes)), 7);
  _mm512_storeu_si512(to, _mm512_and_si512(moved, _mm512_set1_epi16((int16_t)0xbfff)));
}
LR_INLINE void v_store_i8(int8_t* p, i32v v) { _mm_storeu_si128((__m128i*)p, _mm512_cvtsepi32_epi8((__m512i)v)); }
LR_INLINE void v_store_u8(uint8_t* p, i32v v) { _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8((__m512i)v)); }
LR_INLINE void v_store_fp16(uint16_t* p, f32v v) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

LR_INLINE u8v v_high4(u8v v) { return (u8v)_mm512_srli_epi16((__m512i)v, 4) & 15; }
template <> LR_ALWAYS_INLINE u8v v_table<u8v>(const int8_t* table) {
  return v_signed((u8v)_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)table)));
}
LR_INLINE u8v v_lookup(u8v table, u8v codes) { return (u8v)_mm512_shuffle_epi8((__m512i)table, (__m512i)codes); }
template <int by> LR_INLINE u8v v_join(u8v code, u8v high, uint8_t mask) {
  __m512i moved = (__m512i)high;
  if constexpr (by > 0) moved = _mm512_slli_epi16(moved, by);
  if constexpr (by < 0) moved = _mm512_srli_epi16(moved, -by);
  return (u8v)_mm512_ternarylogic_epi32((__m512i)code, moved, _mm512_set1_epi8((char)mask), 0xf8);
}

LR_INLINE i32v v_dot_unsigned(i32v c, u8v codes, i8v x) {
  return (i32v)_mm512_dpbusd_epi32((__m512i)c, (__m512i)codes, (__m512i)x);
}
LR_INLINE i32v v_dot_signed(i32v c, u8v codes, i8v x) { return v_dot_unsigned(c, codes, x); }
LR_INLINE i32v v_dot_probabilities(i32v c, i8v weights, u8v codes) { return v_dot_unsigned(c, (u8v)weights, (i8v)codes); }
LR_INLINE i32v v_dot_probabilities_4bit(i32v c, i8v a, u8v codes_a, i8v b, u8v codes_b) {
  return v_dot_probabilities(v_dot_probabilities(c, a, codes_a), b, codes_b);
}

#if defined(__AVX512BF16__)
#define LR_HAS_BF16 1
typedef __m512bh bf16v;

LR_INLINE bf16v v_set2(const void* p) { return (bf16v)v_set4(p); }
LR_INLINE f32v v_dot_bf16(f32v c, bf16v a, bf16v b) { return _mm512_dpbf16_ps(c, a, b); }
LR_INLINE __m256i v_to_bf16(f32v v) { return (__m256i)_mm512_cvtneps_pbh(v); }
LR_INLINE bf16v v_to_bf16(f32v low, f32v high) { return (bf16v)_mm512_cvtne2ps_pbh(high, low); }
LR_INLINE void v_store_bf16(uint16_t* p, f32v v) { _mm256_storeu_si256((__m256i*)p, v_to_bf16(v)); }
LR_INLINE void v_store_bf16_n(uint16_t* p, f32v v, int n) { _mm256_mask_storeu_epi16(p, first_lanes(n), v_to_bf16(v)); }
#endif

}  // namespace

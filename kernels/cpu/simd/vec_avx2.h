// The vocabulary of simd.h in registers of eight lanes: AVX2; with AVX-VNNI the dot product is the instruction's.
#pragma once
#include "simd/vec.h"

namespace {

constexpr MicroTile kMicroTiles[] = {{1, 2}, {2, 2}, {4, 1}};
#if defined(__AVXVNNI__)
const int kMaxProbabilityCode = 255, kProbabilityZero = 0;  // codes of weights, and what v_dot_probabilities takes less
#else
const int kMaxProbabilityCode = 254, kProbabilityZero = 127;
#endif

LR_INLINE __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

template <> LR_ALWAYS_INLINE f32v v_load_n<f32v>(const float* p, int n) {
  return n >= VL ? v_load<f32v>(p) : (f32v)_mm256_maskload_ps(p, first_lanes(n));
}
template <> LR_ALWAYS_INLINE f32v v_load_n_or<f32v>(const float* p, int n, float other) {
  const __m256i lanes = first_lanes(n);
  return _mm256_blendv_ps(_mm256_set1_ps(other), _mm256_maskload_ps(p, lanes), _mm256_castsi256_ps(lanes));
}
// A masked store takes AMD's processors a dozen cycles.
LR_INLINE void v_store_n(float* p, f32v v, int n) {
  if (n >= VL) v_store(p, v);
  else _mm256_maskstore_ps(p, first_lanes(n), v);
}

LR_INLINE f32v v_fma(f32v a, f32v b, f32v c) { return _mm256_fmadd_ps(a, b, c); }
LR_INLINE f64v v_fma(f64v a, f64v b, f64v c) { return _mm256_fmadd_pd(a, b, c); }
LR_INLINE f64v v_min(f64v a, f64v b) { return _mm256_min_pd(a, b); }
LR_INLINE f64v v_max(f64v a, f64v b) { return _mm256_max_pd(a, b); }
LR_INLINE f64v v_load_f64(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
LR_INLINE uint32_t v_lanes(i32v mask) { return (uint32_t)_mm256_movemask_ps((__m256)mask); }
LR_INLINE f32v v_min(f32v a, f32v b) { return _mm256_min_ps(a, b); }
LR_INLINE f32v v_max(f32v a, f32v b) { return _mm256_max_ps(a, b); }
LR_INLINE i32v v_max(i32v a, i32v b) { return (i32v)_mm256_max_epi32((__m256i)a, (__m256i)b); }
LR_INLINE i32v v_round(f32v v) { return (i32v)_mm256_cvtps_epi32(v); }

// The sum of the lanes by one fixed tree: i + (i + 4), then + 2, + 1.
LR_INLINE float v_reduce_sum(f32v v) {
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
LR_INLINE float v_reduce_max(f32v v) {
  const __m128 b = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}
LR_INLINE int32_t v_reduce_sum(i32v v) {
  __m128i b = _mm_add_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  b = _mm_add_epi32(b, _mm_unpackhi_epi64(b, b));
  return _mm_cvtsi128_si32(b) + _mm_extract_epi32(b, 1);
}
LR_INLINE int32_t v_reduce_max(i32v v) {
  __m128i b = _mm_max_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  b = _mm_max_epi32(b, _mm_unpackhi_epi64(b, b));
  return _mm_cvtsi128_si32(_mm_max_epi32(b, _mm_shuffle_epi32(b, 1)));
}

template <> LR_ALWAYS_INLINE i32v v_load_i8<i32v>(const void* p) {
  return (i32v)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p));
}
template <> LR_ALWAYS_INLINE i32v v_load_u8<i32v>(const void* p) {
  return (i32v)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
}
template <> LR_ALWAYS_INLINE f32v v_load_fp16<f32v>(const void* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
}
LR_INLINE f32v v_pick(const float* table, i32v names) {
  const f32v low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)names);
  const f32v high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)names);
  return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32((__m256i)names, 28)));
}
// GCC would widen half a vector at a time.
LR_INLINE void v_store_f8_as_fp16(uint16_t* to, const uint8_t* codes) {
  const __m256i moved = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)codes)), 7);
  _mm256_storeu_si256((__m256i*)to, _mm256_and_si256(moved, _mm256_set1_epi16((int16_t)0xbfff)));
}
LR_INLINE __m128i v_to_i16(i32v v) {
  return _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
}
LR_INLINE void v_store_i8(int8_t* p, i32v v) {
  _mm_storel_epi64((__m128i*)p, _mm_packs_epi16(v_to_i16(v), _mm_setzero_si128()));
}
LR_INLINE void v_store_u8(uint8_t* p, i32v v) {
  _mm_storel_epi64((__m128i*)p, _mm_packus_epi16(v_to_i16(v), _mm_setzero_si128()));
}
LR_INLINE void v_store_i16(int16_t* p, i32v v) { _mm_storeu_si128((__m128i*)p, v_to_i16(v)); }
LR_INLINE void v_store_fp16(uint16_t* p, f32v v) {
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

LR_INLINE u8v v_high4(u8v v) { return (u8v)_mm256_srli_epi16((__m256i)v, 4) & 15; }
template <> LR_ALWAYS_INLINE u8v v_table<u8v>(const int8_t* table) {
  return v_signed((u8v)_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)table)));
}
LR_INLINE u8v v_lookup(u8v table, u8v codes) { return (u8v)_mm256_shuffle_epi8((__m256i)table, (__m256i)codes); }
template <int by> LR_INLINE u8v v_join(u8v code, u8v high, uint8_t mask) {
  __m256i moved = (__m256i)high;
  if constexpr (by > 0) moved = _mm256_slli_epi16(moved, by);
  if constexpr (by < 0) moved = _mm256_srli_epi16(moved, -by);
  return code | ((u8v)moved & mask);
}

// c + two products of 16 bits in each lane.
LR_INLINE i32v v_dot_i16(i32v c, i32v a, i32v b) {
#if defined(__AVXVNNI__)
  return (i32v)_mm256_dpwssd_avx_epi32((__m256i)c, (__m256i)a, (__m256i)b);
#else
  return (i32v)_mm256_add_epi32((__m256i)c, _mm256_madd_epi16((__m256i)a, (__m256i)b));
#endif
}
#define LR_HAS_DOT_I16 1

#if defined(__AVXVNNI__)
LR_INLINE i32v v_dot_unsigned(i32v c, u8v codes, i8v x) {
  return (i32v)_mm256_dpbusd_avx_epi32((__m256i)c, (__m256i)codes, (__m256i)x);
}
LR_INLINE i32v v_dot_signed(i32v c, u8v codes, i8v x) { return v_dot_unsigned(c, codes, x); }
LR_INLINE i32v v_dot_probabilities(i32v c, i8v weights, u8v codes) { return v_dot_unsigned(c, (u8v)weights, (i8v)codes); }
LR_INLINE i32v v_dot_probabilities_4bit(i32v c, i8v a, u8v codes_a, i8v b, u8v codes_b) {
  return v_dot_probabilities(v_dot_probabilities(c, a, codes_a), b, codes_b);
}
#else
// Two products of codes below 128 fit 16 bits; so do two of |code| <= 128 and |x| <= 127: nothing saturates.
LR_INLINE i32v v_dot_unsigned(i32v c, u8v codes, i8v x) {
  return c + (i32v)_mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)codes, (__m256i)x), _mm256_set1_epi16(1));
}
LR_INLINE i32v v_dot_signed(i32v c, u8v codes, i8v x) {
  return v_dot_unsigned(c, (u8v)_mm256_abs_epi8((__m256i)codes), (i8v)_mm256_sign_epi8((__m256i)x, (__m256i)codes));
}
LR_INLINE i32v v_dot_probabilities(i32v c, i8v weights, u8v codes) { return v_dot_signed(c, codes, weights); }
LR_INLINE i32v v_dot_probabilities_4bit(i32v c, i8v a, u8v codes_a, i8v b, u8v codes_b) {
  const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16((__m256i)codes_a, (__m256i)a),
                                         _mm256_maddubs_epi16((__m256i)codes_b, (__m256i)b));
  return c + (i32v)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// Sums with factors of codes of 6 bits around 32 start with what the zero point takes off each of both pairs of columns, as numbers of 16
// bits: v_pair_sums of 16 codes of an activation. So they end within 16 bits, whatever they pass on the way.
constexpr bool starts_with_pairs(int most, int zero) { return most == 63 && zero == 32; }
LR_INLINE int32_t v_pair_sums(const int8_t* codes, int zero) {
  const __m128i x = _mm_loadu_si128((const __m128i*)codes), pairs = _mm_maddubs_epi16(_mm_set1_epi8((char)zero), x);
  const __m128i halves = _mm_add_epi16(pairs, _mm_shuffle_epi32(pairs, 0x4e));
  const __m128i both = _mm_add_epi16(halves, _mm_shuffle_epi32(halves, 0xb1));
  return _mm_cvtsi128_si32(_mm_sub_epi16(_mm_setzero_si128(), both));
}
#define LR_HAS_PAIR_SUMS 1

// Pairs of products are added up in 16 bits as long as they cannot leave them: eight vectors of codes of up to 4 bits, four
// of 5 bits, two of 6 bits, or four of those less their zero point; and as long as they have the same factors.
template <int most, int zero, int n, bool factored> struct CodeSum<most, zero, n, factored, i32v> {
  static constexpr bool from_pairs = factored && starts_with_pairs(most, zero);
  static constexpr int largest = from_pairs ? (most + 1) / 2 : most, fit = most ? 32767 / (2 * 127 * largest) : 1;
  static constexpr int wanted = factored ? FACTOR_VECTORS : n, together = fit < wanted ? fit : wanted;
  static_assert(from_pairs ? n == together : n % together == 0, "sums would be left over");
  i32v sum;
  const int32_t* factors;
  __m256i pairs;
  LR_ALWAYS_INLINE void begin(i32v start, const int32_t* of_vectors) {
    sum = from_pairs ? i32v{} : start;
    pairs = (__m256i)start;
    factors = of_vectors;
  }
  LR_ALWAYS_INLINE void add(int i, u8v codes, const int8_t* four) {
    const __m256i w = (__m256i)codes, x = (__m256i)v_set4(four);
    const __m256i a = most ? w : _mm256_abs_epi8(w), b = most ? x : _mm256_sign_epi8(x, w);
    const __m256i products = _mm256_maddubs_epi16(a, b);
    pairs = i % together || from_pairs ? _mm256_add_epi16(pairs, products) : products;
    in_order(pairs);
    if (i % together != together - 1) return;
    const __m256i times = factored ? _mm256_set1_epi32(factors[i / FACTOR_VECTORS]) : _mm256_set1_epi16(1);
    sum = sum + (i32v)_mm256_madd_epi16(pairs, times);
    in_order(sum);
  }
  LR_ALWAYS_INLINE i32v total() const { return sum; }
};
#define LR_HAS_CODE_SUM 1

// Signed codes as numbers of 16 bits: the first and third of each four, the second and fourth.
LR_INLINE u8v v_first_third(u8v v) { return (u8v)_mm256_srai_epi16(_mm256_slli_epi16((__m256i)v, 8), 8); }
LR_INLINE u8v v_second_fourth(u8v v) { return (u8v)_mm256_srai_epi16((__m256i)v, 8); }

// 32 codes of an activation and their factors, one word for each 16, as WidenedSum multiplies them: of every 16 the first
// and third of each four, then the second and fourth.
LR_INLINE void v_store_widened(int8_t* to, const int8_t* codes, int32_t factors_a, int32_t factors_b) {
  const u8v x = v_load<u8v>(codes);
  const __m256i times = _mm256_setr_m128i(_mm_set1_epi32(factors_a), _mm_set1_epi32(factors_b));
  const __m256i a = _mm256_mullo_epi16((__m256i)v_first_third(x), times);
  const __m256i b = _mm256_mullo_epi16((__m256i)v_second_fourth(x), times);
  v_store(to, (u8v)_mm256_permute2x128_si256(a, b, 0x20));
  v_store(to + 32, (u8v)_mm256_permute2x128_si256(a, b, 0x31));
}
#define LR_HAS_WIDENED_SUM 1
#endif

}  // namespace

// The vocabulary of simd.h in the compiler's own vectors of four lanes: for any machine, and for reading.
#pragma once
#include "simd/fp16.h"
#include "simd/vec.h"
#if defined(__aarch64__)
#include "simd/vec_aarch64.h"
#endif

namespace {

typedef int16_t i16v __attribute__((vector_size(16)));
typedef uint8_t u8x4 __attribute__((vector_size(4)));
typedef int8_t i8x4 __attribute__((vector_size(4)));
typedef uint16_t u16x4 __attribute__((vector_size(8)));

constexpr MicroTile kMicroTiles[] = {{1, 1}};
const int kMaxProbabilityCode = 127,
          kProbabilityZero = 0;  // codes of weights: 7 bits, an 8th would cost a sixth of the speed

#if defined(__aarch64__)
// Sums over weights are the same on every machine of this unit, and most have no fused multiply-add.
LR_INLINE f32x16 v_fma(f32x16 a, f32x16 b, f32x16 c) {
  for (int i = 0; i < 16 / VL; i++) c.v[i] = a.v[i] * b.v[i] + c.v[i];
  return c;
}
#else
LR_INLINE f32v v_fma(f32v a, f32v b, f32v c) { return a * b + c; }  // two roundings: there is no other
LR_INLINE f64v v_fma(f64v a, f64v b, f64v c) { return a * b + c; }
LR_INLINE f64v v_min(f64v a, f64v b) { return f64v{a[0] < b[0] ? a[0] : b[0], a[1] < b[1] ? a[1] : b[1]}; }
LR_INLINE f64v v_max(f64v a, f64v b) { return f64v{a[0] > b[0] ? a[0] : b[0], a[1] > b[1] ? a[1] : b[1]}; }
LR_INLINE f64v v_load_f64(const float* p) { return f64v{p[0], p[1]}; }
LR_INLINE uint32_t v_lanes(i32v mask) {
  return (uint32_t)((mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8));
}

template <> LR_ALWAYS_INLINE f32v v_load_fp16<f32v>(const void* p) {
  u16x4 cells;
  memcpy(&cells, p, sizeof cells);
  const i32v h = __builtin_convertvector(cells, i32v), rest = (h & 0x7fff) << 13;
  const f32v size = v_select(rest < 0x0f800000, v_of_bits(rest) * 0x1p112f, v_of_bits(rest | 0x7f800000));
  return v_of_bits(v_bits(size) | (h & 0x8000) << 16);
}
LR_NOINLINE void v_store_fp16(uint16_t* p, f32v v) {
  const i32v size = v_bits(v) & 0x7fffffff;
  const i32v small = v_bits(v_of_bits(size) + 0.5f) - v_bits(v_set<f32v>(0.5f));  // subnormal as a half: the sum rounds
  const i32v normal = ((size + 0xfff + (size >> 13 & 1)) >> 13) - (112 << 10);
  const f32v half = v_select(size < 0x38800000, v_of_bits(small), v_of_bits(normal));
  const i32v number = v_bits(v_select(v == v, half, v_of_bits(v_set<i32v>(0x7e00))));
  const u16x4 cells = __builtin_convertvector(number | (v_bits(v) >> 16 & 0x8000), u16x4);
  memcpy(p, &cells, sizeof cells);
}
#endif

LR_INLINE f32v v_min(f32v a, f32v b) { return v_select(a < b, a, b); }
LR_INLINE f32v v_max(f32v a, f32v b) { return v_select(a > b, a, b); }
LR_INLINE i32v v_max(i32v a, i32v b) { return ((a > b) & a) | (~(a > b) & b); }
LR_INLINE i32v v_round(f32v v) {  // |v| below 2^22: adding 1.5 · 2^23 rounds to even and leaves the integer in the low bits
  return v_bits(v + 12582912.0f) - 0x4b400000;
}

// The sum of the lanes by one fixed tree: i + (i + 2), then + 1.
LR_INLINE float v_reduce_sum(f32v v) { return (v[0] + v[2]) + (v[1] + v[3]); }
LR_INLINE float v_reduce_max(f32v v) {
  v = v_max(v, v_swap<2>(v));
  return v_max(v, v_swap<1>(v))[0];
}
LR_INLINE int32_t v_reduce_sum(i32v v) { return v[0] + v[1] + v[2] + v[3]; }
LR_INLINE int32_t v_reduce_max(i32v v) {
  const int32_t a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
  return a > b ? a : b;
}

template <> LR_ALWAYS_INLINE i32v v_load_i8<i32v>(const void* p) {
  i8x4 codes;
  memcpy(&codes, p, sizeof codes);
  return __builtin_convertvector(codes, i32v);
}
LR_INLINE f32v v_pick(const float* table, i32v names) {
  f32v picked;
  for (int i = 0; i < VL; i++) picked[i] = table[names[i]];
  return picked;
}
template <> LR_ALWAYS_INLINE i32v v_load_u8<i32v>(const void* p) {
  u8x4 codes;
  memcpy(&codes, p, sizeof codes);
  return __builtin_convertvector(codes, i32v);
}
LR_INLINE void v_store_i8(int8_t* p, i32v v) {
  const i8x4 codes = __builtin_convertvector(v, i8x4);
  memcpy(p, &codes, sizeof codes);
}
LR_INLINE void v_store_u8(uint8_t* p, i32v v) { v_store_i8((int8_t*)p, v); }

LR_INLINE u8v v_high4(u8v v) { return v >> 4; }
template <> LR_ALWAYS_INLINE u8v v_table<u8v>(const int8_t* table) { return v_load<u8v>(table); }
LR_NOINLINE u8v v_lookup(u8v table, u8v codes) {
  for (int i = 0; i < 16; i++) codes[i] = table[codes[i]];
  return codes;
}
template <int by> LR_INLINE u8v v_join(u8v code, u8v high, uint8_t mask) {
  if constexpr (by >= 0) return code | ((high << by) & mask);
  return code | ((high >> (by < 0 ? -by : 0)) & mask);
}

// Signed codes as numbers of 16 bits: the first and third of each four, the second and fourth.
LR_INLINE u8v v_first_third(u8v v) { return (u8v)((i16v)v << 8 >> 8); }
LR_INLINE u8v v_second_fourth(u8v v) { return (u8v)((i16v)v >> 8); }

// c + two products of 16 bits in each lane.
LR_INLINE i32v v_dot_i16(i32v c, i32v a, i32v b) {
#if defined(__SSE2__)
  return c + (i32v)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  return c + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

// 32 codes of an activation and their factors, as WidenedSum multiplies them: of every 16 the first and third of each four,
// then the second and fourth.
LR_INLINE void v_store_widened(int8_t* to, const int8_t* codes, int32_t factors_a, int32_t factors_b) {
  for (int half = 0; half < 2; half++) {
    const u8v x = v_load<u8v>(codes + 16 * half);
    const i16v times = (i16v)v_set<i32v>(half ? factors_b : factors_a);
    v_store(to + 32 * half, (i16v)v_first_third(x) * times);
    v_store(to + 32 * half + 16, (i16v)v_second_fourth(x) * times);
  }
}
#define LR_HAS_WIDENED_SUM 1

// Two products of codes, |code| <= 128 and |x| <= 127, fit 16 bits.
LR_INLINE i32v v_dot_signed(i32v c, u8v codes, i8v x) {
  const i16v a = (i16v)codes, b = (i16v)x;
  const i32v pairs = (i32v)((a << 8 >> 8) * (b << 8 >> 8) + (a >> 8) * (b >> 8));
  return c + (pairs << 16 >> 16) + (pairs >> 16);
}
LR_INLINE i32v v_dot_unsigned(i32v c, u8v codes, i8v x) { return v_dot_signed(c, codes, x); }
LR_INLINE i32v v_dot_probabilities(i32v c, i8v weights, u8v codes) { return v_dot_signed(c, codes, weights); }
LR_INLINE i32v v_dot_probabilities_4bit(i32v c, i8v a, u8v codes_a, i8v b, u8v codes_b) {
  return v_dot_probabilities(v_dot_probabilities(c, a, codes_a), b, codes_b);
}

}  // namespace

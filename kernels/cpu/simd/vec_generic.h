// The sixteen lanes of simd.h in the compiler's own vectors: for any machine, and for reading.
#pragma once
#include <stdint.h>
#include <string.h>
#include "simd/fp16.h"

#define LR_INLINE static inline __attribute__((always_inline))
#define LR_NOINLINE static __attribute__((noinline))  // lane by lane: inlined everywhere it would take minutes to compile

namespace {

typedef float F __attribute__((vector_size(64)));
typedef int32_t I __attribute__((vector_size(64)));
typedef int16_t I16 __attribute__((vector_size(64)));
typedef uint8_t B __attribute__((vector_size(64)));
typedef int8_t B16 __attribute__((vector_size(16)));
typedef int32_t X;  // four codes

struct MicroTile {
  int tokens, groups;
};
constexpr MicroTile kMicroTiles[] = {{1, 1}};  // by tokens: as many sums as registers hold
const int kSignedZero = 0;
const int kMaxProbabilityCode = 127,
          kProbabilityZero = 0;  // codes of weights: 7 bits, an 8th would cost a sixth of the speed
const bool kHasBf16 = false;

LR_INLINE F f_zero() { return F{}; }
LR_INLINE F f_set(float x) { return F{} + x; }
LR_INLINE F f_load(const float* p) {
  F v;
  memcpy(&v, p, sizeof v);
  return v;
}
LR_NOINLINE F f_load_or(const float* p, int n, float other) {
  F v = f_set(other);
  memcpy(&v, p, (size_t)(n < 16 ? n : 16) * 4);
  return v;
}
LR_INLINE F f_load_n(const float* p, int n) { return f_load_or(p, n, 0.0f); }
LR_INLINE void f_store(float* p, F v) { memcpy(p, &v, sizeof v); }
LR_INLINE void f_store_n(float* p, F v, int n) { memcpy(p, &v, (size_t)(n < 16 ? n : 16) * 4); }
LR_INLINE F f_choose(I mask, F yes, F no) { return (F)(((I)yes & mask) | ((I)no & ~mask)); }
LR_INLINE F f_add(F a, F b) { return a + b; }
LR_INLINE F f_sub(F a, F b) { return a - b; }
LR_INLINE F f_mul(F a, F b) { return a * b; }
LR_INLINE F f_div(F a, F b) { return a / b; }
LR_INLINE F f_fma(F a, F b, F c) { return a * b + c; }  // two roundings: this unit has no other
LR_NOINLINE F f_min(F a, F b) { return f_choose(a < b, a, b); }
LR_NOINLINE F f_max(F a, F b) { return f_choose(a > b, a, b); }
LR_INLINE F f_where_greater(F a, F b, F v) { return (F)((I)v & (a > b)); }
LR_INLINE F f_unless_greater(F a, F b, F v) { return (F)((I)v & ~(a > b)); }
LR_INLINE F f_from_i(I v) { return __builtin_convertvector(v, F); }
LR_INLINE F f_of_bits(I v) { return (F)v; }
LR_NOINLINE F f_from_fp16(const void* p) {
  float v[16];
  for (int i = 0; i < 16; i++) v[i] = fp16_to_float((const uint8_t*)p + 2 * i);
  return f_load(v);
}

LR_INLINE I i_zero() { return I{}; }
LR_INLINE I i_set(int32_t x) { return I{} + x; }
LR_INLINE I i_load(const void* p) {
  I v;
  memcpy(&v, p, sizeof v);
  return v;
}
LR_NOINLINE I i_load_u8(const void* p) {
  int32_t v[16];
  for (int i = 0; i < 16; i++) v[i] = ((const uint8_t*)p)[i];
  return i_load(v);
}
LR_INLINE F f_from_u8(const void* p) { return f_from_i(i_load_u8(p)); }
LR_NOINLINE F f_from_i8(const void* p) {
  B16 v;
  memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, F);
}
LR_INLINE I i_add(I a, I b) { return a + b; }
LR_INLINE I i_sub(I a, I b) { return a - b; }
LR_INLINE I i_and(I a, I b) { return a & b; }
LR_INLINE I i_max(I a, I b) { return ((a > b) & a) | (~(a > b) & b); }
template <int n> LR_INLINE I i_shl(I a) { return a << n; }
LR_INLINE I i_of_bits(F v) { return (I)v; }
LR_INLINE I i_round(F v) {  // |v| below 2^22: adding 1.5 · 2^23 rounds to even and leaves the integer in the low bits
  return (I)(v + 12582912.0f) - 0x4b400000;
}
LR_NOINLINE int32_t i_reduce_sum(I v) {
  int32_t sum = 0;
  for (int i = 0; i < 16; i++) sum += v[i];
  return sum;
}
LR_NOINLINE int32_t i_reduce_max(I v) {
  int32_t max = v[0];
  for (int i = 1; i < 16; i++) max = v[i] > max ? v[i] : max;
  return max;
}
LR_NOINLINE void i_store_i8(int8_t* p, I v) {
  const B16 narrow = __builtin_convertvector(v, B16);
  memcpy(p, &narrow, sizeof narrow);
}
LR_NOINLINE void i_store_u8(uint8_t* p, I v) {  // 0 to 255
  for (int i = 0; i < 16; i++) p[i] = (uint8_t)v[i];
}
LR_NOINLINE float f_reduce_sum(F v) {
  for (int n = 8; n; n /= 2)
    for (int i = 0; i < n; i++) v[i] += v[i + n];
  return v[0];
}
LR_NOINLINE float f_reduce_max(F v) {
  float max = v[0];
  for (int i = 1; i < 16; i++) max = v[i] > max ? v[i] : max;
  return max;
}

LR_INLINE B b_load(const void* p) {
  B v;
  memcpy(&v, p, sizeof v);
  return v;
}
LR_INLINE B b_low4(B v) { return v & 15; }
LR_INLINE B b_high4(B v) { return v >> 4; }
LR_INLINE B b_signed(B v) { return v; }
LR_NOINLINE B b_table(const int8_t* table) {
  uint8_t v[64];
  for (int i = 0; i < 64; i++) v[i] = (uint8_t)table[i % 16];
  return b_load(v);
}
LR_NOINLINE B b_lookup(B table, B codes) {
  uint8_t name[64], value[64];
  memcpy(name, &codes, 64);
  memcpy(value, &table, 64);
  for (int i = 0; i < 64; i++) name[i] = value[name[i]];
  return b_load(name);
}
template <int by> LR_INLINE B b_join(B code, B high, uint8_t mask) {
  if constexpr (by >= 0) return code | ((high << by) & mask);
  return code | ((high >> (by < 0 ? -by : 0)) & mask);
}

LR_INLINE X x_load(const int8_t* p) {
  X x;
  memcpy(&x, p, 4);
  return x;
}
// Sixteen rows of four codes. Two products of codes, |code| <= 128 and |x| <= 127, fit 16 bits.
LR_INLINE I dot_signed(I c, B codes, X x) {
  const int32_t even = (int32_t)((uint32_t)(uint16_t)(int8_t)x | (uint32_t)(int8_t)(x >> 16) << 16);
  const int32_t odd = (int32_t)((uint32_t)(uint16_t)(int8_t)(x >> 8) | (uint32_t)(x >> 24) << 16);
  const I16 words = (I16)codes;
  const I pairs = (I)((words << 8 >> 8) * (I16)i_set(even) + (words >> 8) * (I16)i_set(odd));
  return c + (pairs << 16 >> 16) + (pairs >> 16);
}
LR_INLINE I dot_unsigned(I c, B codes, X x) { return dot_signed(c, codes, x); }                   // codes of at most 127
LR_INLINE I dot_probabilities(I c, X weights, B codes) { return dot_signed(c, codes, weights); }  // signed codes
LR_INLINE I dot_probabilities_4bit(I c, X weights, B codes) { return dot_signed(c, codes, weights); }  // of at most 15
LR_INLINE F dot_bf16(F c, const void*, const uint16_t*) { return c; }
LR_INLINE void f_store_bf16(uint16_t*, F) {}

}  // namespace

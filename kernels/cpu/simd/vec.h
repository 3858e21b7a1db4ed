// The types of simd.h, and what the compiler's own vectors give alike on every instruction set: arithmetic and comparisons
// by operators (a mask is all ones or all zeros in a lane), plain loads. What differs is in the headers of instruction
// sets: they specialise, for one register, the templates that are declared here for sixteen lanes.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LR_ALWAYS_INLINE inline __attribute__((always_inline))
#define LR_INLINE static LR_ALWAYS_INLINE
#define LR_NOINLINE static __attribute__((noinline))  // lane by lane: inlined everywhere it would take minutes to compile

namespace {

#if defined(__AVX512F__)
enum { VL = 16 };
#elif defined(__AVX2__)
enum { VL = 8 };
#else
enum { VL = 4 };
#endif

typedef float f32v __attribute__((vector_size(4 * VL)));
typedef int32_t i32v __attribute__((vector_size(4 * VL)));
typedef double f64v __attribute__((vector_size(4 * VL)));
typedef uint8_t u8v __attribute__((vector_size(4 * VL)));
typedef int8_t i8v __attribute__((vector_size(4 * VL)));

// Sixteen lanes in as many registers as they take; one register that has sixteen is used as it is.
template <class R> struct x16 {
  typedef R Register;
  R v[16 / VL];
};
template <class R> using sixteen = std::conditional_t<VL == 16, R, x16<R>>;
template <class V> constexpr bool is_register = sizeof(V) == 4 * VL;

template <int most, int zero, int n, bool factored, class V> struct CodeSum;
enum { FACTOR_VECTORS = 4 };  // of four columns

typedef sixteen<f32v> f32x16;
typedef sixteen<i32v> i32x16;
typedef sixteen<u8v> u8x64;

// Sums that a product of codes keeps in registers: tokens × groups of 16 rows.
struct MicroTile {
  int tokens, groups;
};

template <class V, class T> LR_INLINE V v_set(T x) {
  if constexpr (is_register<V>) {
    return x - V{};
  } else {
    V all;
    for (auto& v : all.v) v = v_set<typename V::Register>(x);
    return all;
  }
}

template <class V> LR_INLINE V v_load(const void* p) {
  V all;
  if constexpr (is_register<V>) memcpy(&all, p, sizeof all);
  else
    for (int i = 0; i < 16 / VL; i++) all.v[i] = v_load<typename V::Register>((const char*)p + 4 * VL * i);
  return all;
}

template <class V> LR_INLINE void v_store(void* p, V all) {
  if constexpr (is_register<V>) memcpy(p, &all, sizeof all);
  else
    for (int i = 0; i < 16 / VL; i++) v_store((char*)p + 4 * VL * i, all.v[i]);
}

LR_INLINE f32v v_select(i32v mask, f32v yes, f32v no) { return (f32v)(((i32v)yes & mask) | ((i32v)no & ~mask)); }
LR_INLINE i32v v_bits(f32v v) { return (i32v)v; }
LR_INLINE f32v v_of_bits(i32v v) { return (f32v)v; }
LR_INLINE f32v v_to_f32(i32v v) { return __builtin_convertvector(v, f32v); }

#if defined(__AVX512F__) || defined(__AVXVNNI__)
const int kSignedZero = 128;  // what v_signed adds to a signed code: their dot product takes the first factor unsigned
#else
const int kSignedZero = 0;
#endif
LR_INLINE u8v v_signed(u8v v) { return v ^ (uint8_t)kSignedZero; }
LR_INLINE u8v v_low4(u8v v) { return v & 15; }
template <int n> LR_INLINE u8v v_take(u8v v) { return v - (uint8_t)n; }
LR_INLINE i8v v_set4(const void* p) {
  int32_t four;
  memcpy(&four, p, sizeof four);
  return (i8v)v_set<i32v>(four);
}

template <int... lane> LR_INLINE i32v v_iota_of(std::integer_sequence<int, lane...>) { return i32v{lane...}; }
LR_INLINE i32v v_iota() { return v_iota_of(std::make_integer_sequence<int, VL>()); }

// Lane i gets what lane i ^ h holds.
template <int h, int... lane> LR_INLINE f32v v_swap_of(f32v v, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(v, v, (lane ^ h)...);
}
template <int h> LR_INLINE f32v v_swap(f32v v) { return v_swap_of<h>(v, std::make_integer_sequence<int, VL>()); }

// Lane i of row j changes places with lane j of row i: of n rows, lanes of any size.
template <int h, class V, int... lane> LR_INLINE void v_exchange(V& a, V& b, std::integer_sequence<int, lane...>) {
  constexpr int n = sizeof...(lane);
  const V first = __builtin_shufflevector(a, b, (lane & h ? n + lane - h : lane)...);
  b = __builtin_shufflevector(a, b, (lane & h ? n + lane : lane + h)...);
  a = first;
}
template <int h = 1, class V, int n> LR_INLINE void v_transpose(V (&rows)[n]) {
  if constexpr (h < n) {
#pragma GCC unroll 16
    for (int i = 0; i < n; i++)
      if (!(i & h)) v_exchange<h>(rows[i], rows[i + h], std::make_integer_sequence<int, n>());
    v_transpose<2 * h>(rows);
  }
}

// Loads of 16 lanes that widen; those of a register are each instruction set's own.
template <class V> LR_INLINE V v_load_i8(const void* p) {
  V all;
  for (int i = 0; i < 16 / VL; i++) all.v[i] = v_load_i8<typename V::Register>((const int8_t*)p + VL * i);
  return all;
}
template <class V> LR_INLINE V v_load_u8(const void* p) {
  V all;
  for (int i = 0; i < 16 / VL; i++) all.v[i] = v_load_u8<typename V::Register>((const uint8_t*)p + VL * i);
  return all;
}
template <class V> LR_INLINE V v_load_fp16(const void* p) {
  V all;
  for (int i = 0; i < 16 / VL; i++) all.v[i] = v_load_fp16<typename V::Register>((const uint16_t*)p + VL * i);
  return all;
}

#if !defined(__AVX2__)
// As many codes of FP8 (E4M3) as halves fit a register, as halves of a 2^8th of their numbers: the bits but for the sign move.
typedef int8_t f8v __attribute__((vector_size(2 * VL)));
typedef int16_t halfv __attribute__((vector_size(4 * VL)));
LR_INLINE void v_store_f8_as_fp16(uint16_t* to, const uint8_t* codes) {
  f8v bytes;
  memcpy(&bytes, codes, sizeof bytes);
  const halfv halves = __builtin_convertvector(bytes, halfv) << 7 & (int16_t)0xbfff;
  memcpy(to, &halves, sizeof halves);
}
#endif

// A table of 16 codes for v_lookup.
template <class V> LR_INLINE V v_table(const int8_t* table) {
  V all;
  for (auto& v : all.v) v = v_table<typename V::Register>(table);
  return all;
}

// The first n floats, then `other` or zeros, and a store of the first n; any n.
template <class V> LR_INLINE V v_load_n_or(const float* p, int n, float other) {
  V all;
  for (int i = 0; i < 16 / VL; i++) all.v[i] = v_load_n_or<typename V::Register>(p + VL * i, n - VL * i, other);
  return all;
}
template <class V> LR_INLINE V v_load_n(const float* p, int n) {
  V all;
  for (int i = 0; i < 16 / VL; i++) all.v[i] = v_load_n<typename V::Register>(p + VL * i, n - VL * i);
  return all;
}
#if !defined(__AVX2__)  // no loads and stores by masks
LR_NOINLINE f32v v_load_some(const float* p, int n, float other) {
  f32v v = v_set<f32v>(other);
  if (n > 0) memcpy(&v, p, (size_t)n * 4);
  return v;
}
template <> LR_ALWAYS_INLINE f32v v_load_n_or<f32v>(const float* p, int n, float other) {
  return n >= VL ? v_load<f32v>(p) : v_load_some(p, n, other);
}
template <> LR_ALWAYS_INLINE f32v v_load_n<f32v>(const float* p, int n) { return v_load_n_or<f32v>(p, n, 0.0f); }
LR_INLINE void v_store_n(float* p, f32v v, int n) {
  if (n > 0) memcpy(p, &v, (size_t)(n < VL ? n : VL) * 4);
}
#endif

// GCC would make a tree of a chain of additions, which takes more registers than there are.
template <class T> LR_INLINE void in_order([[maybe_unused]] T& sum) {
#if defined(__SSE2__)
  __asm__("" : "+x"(sum));
#endif
}

// What lies at p may be something else from now on, so it is stored before, and loaded after.
LR_INLINE void forget_memory(const void* p) { __asm__ volatile("" ::"r"(p) : "memory"); }

LR_INLINE void prefetch_floats(const float* p, int n) {
  for (int i = 0; i < n; i += 16) __builtin_prefetch(p + i);
}

}  // namespace

// The Metal Shading Language on a CPU: as much of <metal_stdlib> as kernels may use. The words that only Metal has (kernel,
// device, constant, thread, threadgroup, attributes) are dealt with by tests/support/localrun_testing/emulator/msl.py.
//
// Left out on purpose: simd_sum and its like, which add in an order nobody promises; barriers that order no memory.
#pragma once
#include "emulator.h"
#include "metal_vectors.h"

typedef uint8_t uchar;
typedef uint16_t ushort;
typedef uint32_t uint;
typedef unsigned long ulong;
typedef _Float16 half;  // storage: sums of halves round as g++ likes, so convert first
static inline half operator""h(long double v) { return (half)v; }

struct bfloat {
  uint16_t bits;
  bfloat() = default;
  explicit bfloat(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    bits = f != f ? 0x7fc0 : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
  }
  operator float() const {
    const uint32_t u = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
  }
};

#define EMU_VECTORS(T) typedef metal::vec<T, 2> T##2; typedef metal::vec<T, 3> T##3; typedef metal::vec<T, 4> T##4;
EMU_VECTORS(bool) EMU_VECTORS(char) EMU_VECTORS(uchar) EMU_VECTORS(short) EMU_VECTORS(ushort) EMU_VECTORS(int)
EMU_VECTORS(uint) EMU_VECTORS(long) EMU_VECTORS(ulong) EMU_VECTORS(half) EMU_VECTORS(bfloat) EMU_VECTORS(float)
#undef EMU_VECTORS

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define M_LOG2E_F 1.44269504088896340736f
#define M_PI_F 3.14159265358979323846f

namespace metal {
// Threads that meet. A barrier that a thread of the threadgroup has left without is undefined, so it is an error here.
enum class mem_flags : uint { mem_device = 1, mem_threadgroup = 2 };
static inline mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((uint)a | (uint)b); }
static inline void threadgroup_barrier(mem_flags, EMU_HERE) { emu_block_barrier(file, line, true); }
static inline void simdgroup_barrier(mem_flags, EMU_HERE) { emu_meet(EMU_SYNC, ~0u, nullptr, file, line); }

// Any value, 32 bits at a time; lanes that are not there give NaN.
template <class T> static inline T emu_from_lane(T value, uint32_t source, const char* file, int line) {
  uint32_t words[(sizeof(T) + 3) / 4] = {};
  memcpy(words, &value, sizeof(T));
  for (uint32_t& word : words) word = emu_shuffled(~0u, word, source, file, line);
  memcpy((void*)&value, words, sizeof(T));
  return value;
}
#define EMU_MOVE(name, second, source)                                                        \
  template <class T> static inline T name(T value, ushort second, EMU_HERE) {                 \
    const uint32_t lane = emu_current->lane;                                                  \
    return emu_from_lane(value, source, file, line);                                          \
  }
EMU_MOVE(simd_shuffle, from, from)
EMU_MOVE(simd_broadcast, from, from)
EMU_MOVE(simd_shuffle_xor, mask, lane ^ mask)
EMU_MOVE(simd_shuffle_up, by, lane >= by ? lane - by : lane)
EMU_MOVE(simd_shuffle_down, by, lane + by < 32 ? lane + by : lane)
EMU_MOVE(quad_shuffle, from, (lane & ~3u) | (from & 3))
EMU_MOVE(quad_broadcast, from, (lane & ~3u) | (from & 3))
EMU_MOVE(quad_shuffle_xor, mask, (lane & ~3u) | ((lane ^ mask) & 3))
EMU_MOVE(quad_shuffle_up, by, lane % 4 >= by ? lane - by : lane)
EMU_MOVE(quad_shuffle_down, by, lane % 4 + by < 4 ? lane + by : lane)
#undef EMU_MOVE
template <class T> static inline T simd_broadcast_first(T value, EMU_HERE) { return emu_from_lane(value, 0, file, line); }
struct simd_vote {
  uint32_t lanes;
  bool all() const { return lanes == ~0u; }
  bool any() const { return lanes != 0; }
  explicit operator ulong() const { return lanes; }
};
static inline simd_vote simd_ballot(bool yes, EMU_HERE) {
  uint32_t lanes = yes;
  emu_meet(EMU_BALLOT, ~0u, &lanes, file, line);
  return {lanes};
}
static inline bool simd_all(bool yes, EMU_HERE) { return simd_ballot(yes, file, line).all(); }
static inline bool simd_any(bool yes, EMU_HERE) { return simd_ballot(yes, file, line).any(); }
// The order of these makes no difference.
template <class T> static inline T simd_max(T value, EMU_HERE) {
  for (int by = 16; by; by /= 2) {
    const T other = simd_shuffle_xor(value, by, file, line);
    value = other > value ? other : value;
  }
  return value;
}
template <class T> static inline T simd_min(T value, EMU_HERE) { return -simd_max(-value, file, line); }

// Built-in functions of numbers, and of vectors number by number.
template <class To, class From> static inline To as_type(const From& value) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
  To result;
  memcpy((void*)&result, &value, sizeof result);
  return result;
}
#define EMU_ONE(name, ...)                                                      \
  static inline float name(float x) { return __VA_ARGS__; }                     \
  template <int N> static inline vec<float, N> name(vec<float, N> v) {          \
    for (int i = 0; i < N; i++) v[i] = name(v[i]);                              \
    return v;                                                                   \
  }
#define EMU_FUNCTIONS                                                                                          \
  EMU_ONE(exp, __builtin_expf(x)) EMU_ONE(exp2, __builtin_exp2f(x)) EMU_ONE(log, __builtin_logf(x))            \
  EMU_ONE(log2, __builtin_log2f(x)) EMU_ONE(sin, __builtin_sinf(x)) EMU_ONE(cos, __builtin_cosf(x))            \
  EMU_ONE(tanh, __builtin_tanhf(x)) EMU_ONE(sqrt, __builtin_sqrtf(x)) EMU_ONE(rsqrt, 1 / __builtin_sqrtf(x))   \
  EMU_ONE(floor, __builtin_floorf(x)) EMU_ONE(ceil, __builtin_ceilf(x)) EMU_ONE(trunc, __builtin_truncf(x))    \
  EMU_ONE(rint, __builtin_rintf(x)) EMU_ONE(round, __builtin_roundf(x)) EMU_ONE(fabs, __builtin_fabsf(x))      \
  static inline float pow(float x, float y) { return __builtin_powf(x, y); }                                   \
  static inline float divide(float x, float y) { return x / y; }
EMU_FUNCTIONS
namespace precise { EMU_FUNCTIONS }
namespace fast { EMU_FUNCTIONS }  // a GPU gives other bits
#undef EMU_ONE

template <class T> static inline T abs(T x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return fabs(x); }
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
template <int N> static inline vec<float, N> fma(vec<float, N> a, vec<float, N> b, vec<float, N> c) {
  for (int i = 0; i < N; i++) a[i] = fma(a[i], b[i], c[i]);
  return a;
}
// A NaN loses, as in fmin and fmax.
template <class T> static inline T min(T a, T b) { return b < a || a != a ? b : a; }
template <class T> static inline T max(T a, T b) { return b > a || a != a ? b : a; }
template <class T, int N> static inline vec<T, N> min(vec<T, N> a, vec<T, N> b) {
  for (int i = 0; i < N; i++) a[i] = min(a[i], b[i]);
  return a;
}
template <class T, int N> static inline vec<T, N> max(vec<T, N> a, vec<T, N> b) {
  for (int i = 0; i < N; i++) a[i] = max(a[i], b[i]);
  return a;
}
template <class T> static inline T fmin(T a, T b) { return min(a, b); }
template <class T> static inline T fmax(T a, T b) { return max(a, b); }
template <class T> static inline T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <class T> static inline T select(T no, T yes, bool which) { return which ? yes : no; }
template <class T, int N> static inline vec<T, N> select(vec<T, N> no, vec<T, N> yes, vec<bool, N> which) {
  for (int i = 0; i < N; i++) no[i] = which[i] ? yes[i] : no[i];
  return no;
}
template <int N> static inline bool all(vec<bool, N> v) {
  for (int i = 0; i < N; i++)
    if (!v[i]) return false;
  return true;
}
template <int N> static inline bool any(vec<bool, N> v) {
  for (int i = 0; i < N; i++)
    if (v[i]) return true;
  return false;
}
template <int N> static inline float dot(vec<float, N> a, vec<float, N> b) {
  float sum = a[0] * b[0];
  for (int i = 1; i < N; i++) sum += a[i] * b[i];
  return sum;
}
static inline bool isnan(float x) { return x != x; }
static inline bool isinf(float x) { return __builtin_isinf(x); }
static inline bool isfinite(float x) { return __builtin_isfinite(x); }
static inline float copysign(float x, float of) { return __builtin_copysignf(x, of); }
static inline float ldexp(float x, int by) { return __builtin_ldexpf(x, by); }
static inline float sign(float x) { return x > 0 ? 1.f : x < 0 ? -1.f : 0.f; }
static inline uint popcount(uint x) { return (uint)__builtin_popcount(x); }
static inline uint clz(uint x) { return x ? (uint)__builtin_clz(x) : 32; }
static inline uint ctz(uint x) { return x ? (uint)__builtin_ctz(x) : 32; }
static inline uint extract_bits(uint x, uint from, uint n) { return n == 32 ? x : x >> from & ((1u << n) - 1); }
static inline int extract_bits(int x, uint from, uint n) { return n ? (int)((uint)x << (32 - n - from)) >> (32 - n) : 0; }
static inline uint mulhi(uint a, uint b) { return (uint)((ulong)a * b >> 32); }

// 8×8 matrices: a lane holds two numbers, see emu_mma_8x8. What is multiplied becomes float32, and so does the sum.
template <class T, int ROWS, int COLUMNS> struct simdgroup_matrix {
  static_assert(ROWS == 8 && COLUMNS == 8, "simdgroup matrices are 8x8");
  vec<T, 2> own;
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T same) : own(same) {}
  vec<T, 2>& thread_elements() { return own; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
template <class T, int R, int C> static inline simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T same) {
  return simdgroup_matrix<T, R, C>(same);
}
// Each lane reads and writes its own numbers here, where bounds and races are checked. No order of memory comes with it.
template <class M, class T>
static inline size_t emu_place(const M&, int i, T stride, ulong2 origin, bool transpose) {
  const size_t row = emu_row_8x8((int)emu_current->lane), column = emu_column_8x8((int)emu_current->lane) + i;
  return (origin.y + (transpose ? column : row)) * stride + origin.x + (transpose ? row : column);
}
template <class T>
static inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const T* from, ulong stride = 8, ulong2 origin = 0,
                                  bool transpose = false, EMU_HERE) {
  simd_ballot(true, file, line);
  for (int i = 0; i < 2; i++) m.own[i] = from[emu_place(m, i, stride, origin, transpose)];
}
template <class T>
static inline void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, T* to, ulong stride = 8, ulong2 origin = 0,
                                   bool transpose = false, EMU_HERE) {
  simd_ballot(true, file, line);
  for (int i = 0; i < 2; i++) to[emu_place(m, i, stride, origin, transpose)] = m.own[i];
}
template <class D, class A, class B, class C>
static inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                                 const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c,
                                                 EMU_HERE) {
  emu_mma_8x8 m;
  for (int i = 0; i < 2; i++) m.a[i] = (float)a.own[i], m.b[i] = (float)b.own[i], m.c[i] = (float)c.own[i];
  emu_meet(EMU_M8N8K8_F32, ~0u, &m, file, line);
  for (int i = 0; i < 2; i++) d.own[i] = (D)m.c[i];
}
template <class D, class A, class B>
static inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                      const simdgroup_matrix<B, 8, 8>& b, EMU_HERE) {
  simdgroup_multiply_accumulate(d, a, b, simdgroup_matrix<float, 8, 8>(0), file, line);
}
}  // namespace metal

// Attributes of parameters, as the number or vector that asks.
template <class T> struct emu_as {
  static T of(emu_dim dim) { return (T)dim.x; }
};
template <class T> struct emu_as<metal::vec<T, 2>> {
  static metal::vec<T, 2> of(emu_dim dim) { return {dim.x, dim.y}; }
};
template <class T> struct emu_as<metal::vec<T, 3>> {
  static metal::vec<T, 3> of(emu_dim dim) { return {dim.x, dim.y, dim.z}; }
};
#define EMU_DIM(name, ...)                                                           \
  static inline emu_dim emu_##name() {                                               \
    const emu_thread& me = *emu_current;                                             \
    const emu_place& at = emu_at;                                                    \
    return __VA_ARGS__;                                                              \
  }
EMU_DIM(threadgroup_position_in_grid, at.block)
EMU_DIM(threadgroups_per_grid, at.grid_dim)
EMU_DIM(thread_position_in_threadgroup, me.thread)
EMU_DIM(threads_per_threadgroup, at.block_dim)
EMU_DIM(threads_per_grid, {at.grid_dim.x * at.block_dim.x, at.grid_dim.y * at.block_dim.y, at.grid_dim.z * at.block_dim.z})
EMU_DIM(thread_position_in_grid, {at.block.x * at.block_dim.x + me.thread.x, at.block.y * at.block_dim.y + me.thread.y,
                                  at.block.z * at.block_dim.z + me.thread.z})
EMU_DIM(thread_index_in_threadgroup, {me.index})
EMU_DIM(thread_index_in_simdgroup, {me.lane})
EMU_DIM(simdgroup_index_in_threadgroup, {me.index / 32})
EMU_DIM(threads_per_simdgroup, {32})
EMU_DIM(simdgroups_per_threadgroup, {(at.block_dim.x * at.block_dim.y * at.block_dim.z + 31) / 32})
#undef EMU_DIM

// One threadgroup at a time: one copy of its variables will do.
#define EMU_THREADGROUP static __attribute__((section("lr_shared"), used))
static inline void emu_takes(size_t bytes, EMU_HERE) {
  emu_current->shared_bytes += (uint32_t)bytes;
  if (emu_current->shared_bytes > 32 << 10) emu_fail("more than 32 KB of threadgroup memory", file, line);
}

// Parameters that are not pointers come by reference, of as many bytes as were set: a letter each, as in Python's struct.
template <> struct emu_letter<const int&> { static constexpr char value = 'i'; };
template <> struct emu_letter<const uint&> { static constexpr char value = 'I'; };
template <> struct emu_letter<const long&> { static constexpr char value = 'q'; };
template <> struct emu_letter<const float&> { static constexpr char value = 'f'; };
struct emu_metal_ends_here;

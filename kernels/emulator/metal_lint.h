// For `clang -fsyntax-only`: address spaces and vectors as the Metal compiler has them, which is a clang, too. No bodies.
#pragma once
typedef __INT8_TYPE__ int8_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __INT16_TYPE__ int16_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef _Float16 half;
typedef __bf16 bfloat;
constexpr half operator""h(long double v) { return (half)v; }
#define LINT_VECTORS(T)                                   \
  typedef T T##2 __attribute__((ext_vector_type(2)));     \
  typedef T T##3 __attribute__((ext_vector_type(3)));     \
  typedef T T##4 __attribute__((ext_vector_type(4)));
LINT_VECTORS(bool) LINT_VECTORS(char) LINT_VECTORS(uchar) LINT_VECTORS(short) LINT_VECTORS(ushort) LINT_VECTORS(int)
LINT_VECTORS(uint) LINT_VECTORS(long) LINT_VECTORS(ulong) LINT_VECTORS(half) LINT_VECTORS(float)
#undef LINT_VECTORS
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#define thread
#define kernel [[maybe_unused]] static
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define M_LOG2E_F 1.44269504088896340736f
#define M_PI_F 3.14159265358979323846f

namespace metal {
enum class mem_flags : uint { mem_device = 1, mem_threadgroup = 2 };
mem_flags operator|(mem_flags, mem_flags);
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);
template <class T> T simd_shuffle(T, ushort);
template <class T> T simd_broadcast(T, ushort);
template <class T> T simd_shuffle_xor(T, ushort);
template <class T> T simd_shuffle_up(T, ushort);
template <class T> T simd_shuffle_down(T, ushort);
template <class T> T quad_shuffle(T, ushort);
template <class T> T quad_broadcast(T, ushort);
template <class T> T quad_shuffle_xor(T, ushort);
template <class T> T quad_shuffle_up(T, ushort);
template <class T> T quad_shuffle_down(T, ushort);
template <class T> T simd_broadcast_first(T);
struct simd_vote { bool all() const; bool any() const; explicit operator ulong() const; };
simd_vote simd_ballot(bool);
bool simd_all(bool);
bool simd_any(bool);
template <class T> T simd_max(T);
template <class T> T simd_min(T);

template <class To, class From> To as_type(From);
#define LINT_FUNCTIONS                                                                                               \
  template <class T> T exp(T); template <class T> T exp2(T); template <class T> T log(T); template <class T> T log2(T); \
  template <class T> T sin(T); template <class T> T cos(T); template <class T> T tanh(T); template <class T> T sqrt(T); \
  template <class T> T rsqrt(T); template <class T> T floor(T); template <class T> T ceil(T);                          \
  template <class T> T trunc(T); template <class T> T rint(T); template <class T> T round(T);                          \
  template <class T> T fabs(T); template <class T> T pow(T, T); template <class T> T divide(T, T);
LINT_FUNCTIONS
namespace precise { LINT_FUNCTIONS }
namespace fast { LINT_FUNCTIONS }
template <class T> T abs(T);
template <class T> T fma(T, T, T);
template <class T> T min(T, T);
template <class T> T max(T, T);
template <class T> T fmin(T, T);
template <class T> T fmax(T, T);
template <class T> T clamp(T, T, T);
template <class T, class B> T select(T, T, B);
template <class T> bool all(T);
template <class T> bool any(T);
template <class T> float dot(T, T);
bool isnan(float);
bool isinf(float);
bool isfinite(float);
float copysign(float, float);
float ldexp(float, int);
float sign(float);
uint popcount(uint);
uint clz(uint);
uint ctz(uint);
template <class T> T extract_bits(T, uint, uint);
uint mulhi(uint, uint);

template <class T, int R, int C> struct simdgroup_matrix {
  typedef T two __attribute__((ext_vector_type(2)));
  simdgroup_matrix();
  explicit simdgroup_matrix(T);
  thread two& thread_elements();
};
template <> struct simdgroup_matrix<bfloat, 8, 8> {
  simdgroup_matrix();
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
template <class T, int R, int C> simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T);
#define LINT_MEMORY(space)                                                                                           \
  template <class T> void simdgroup_load(simdgroup_matrix<T, 8, 8>&, const space T*, ulong = 8, ulong2 = 0, bool = false); \
  template <class T> void simdgroup_store(simdgroup_matrix<T, 8, 8>, space T*, ulong = 8, ulong2 = 0, bool = false);
LINT_MEMORY(device) LINT_MEMORY(threadgroup)
#undef LINT_MEMORY
template <class D, class A, class B, class C>
void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>,
                                   simdgroup_matrix<C, 8, 8>);
template <class D, class A, class B>
void simdgroup_multiply(simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>);
}  // namespace metal

// float4(a, b, c, d) is no expression of clang's vectors, so each such constructor becomes a function.
template <class V, class... A> V lint_vector(A...);
#define bool2(...) lint_vector<bool2>(__VA_ARGS__)
#define bool3(...) lint_vector<bool3>(__VA_ARGS__)
#define bool4(...) lint_vector<bool4>(__VA_ARGS__)
#define char2(...) lint_vector<char2>(__VA_ARGS__)
#define char3(...) lint_vector<char3>(__VA_ARGS__)
#define char4(...) lint_vector<char4>(__VA_ARGS__)
#define uchar2(...) lint_vector<uchar2>(__VA_ARGS__)
#define uchar3(...) lint_vector<uchar3>(__VA_ARGS__)
#define uchar4(...) lint_vector<uchar4>(__VA_ARGS__)
#define short2(...) lint_vector<short2>(__VA_ARGS__)
#define short3(...) lint_vector<short3>(__VA_ARGS__)
#define short4(...) lint_vector<short4>(__VA_ARGS__)
#define ushort2(...) lint_vector<ushort2>(__VA_ARGS__)
#define ushort3(...) lint_vector<ushort3>(__VA_ARGS__)
#define ushort4(...) lint_vector<ushort4>(__VA_ARGS__)
#define int2(...) lint_vector<int2>(__VA_ARGS__)
#define int3(...) lint_vector<int3>(__VA_ARGS__)
#define int4(...) lint_vector<int4>(__VA_ARGS__)
#define uint2(...) lint_vector<uint2>(__VA_ARGS__)
#define uint3(...) lint_vector<uint3>(__VA_ARGS__)
#define uint4(...) lint_vector<uint4>(__VA_ARGS__)
#define long2(...) lint_vector<long2>(__VA_ARGS__)
#define long3(...) lint_vector<long3>(__VA_ARGS__)
#define long4(...) lint_vector<long4>(__VA_ARGS__)
#define ulong2(...) lint_vector<ulong2>(__VA_ARGS__)
#define ulong3(...) lint_vector<ulong3>(__VA_ARGS__)
#define ulong4(...) lint_vector<ulong4>(__VA_ARGS__)
#define half2(...) lint_vector<half2>(__VA_ARGS__)
#define half3(...) lint_vector<half3>(__VA_ARGS__)
#define half4(...) lint_vector<half4>(__VA_ARGS__)
#define float2(...) lint_vector<float2>(__VA_ARGS__)
#define float3(...) lint_vector<float3>(__VA_ARGS__)
#define float4(...) lint_vector<float4>(__VA_ARGS__)

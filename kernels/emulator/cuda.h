// CUDA C++ as NVRTC understands it, and in the place of kernels/cuda/ptx.cuh its instructions, on a CPU.
#pragma once
#include "emulator.h"

// Of <math.h> what kernels call: in C++ it is twenty thousand lines, which took a third of every compile.
extern "C" {
float fmaf(float, float, float);
float fmaxf(float, float);
float fminf(float, float);
float fabsf(float);
float logf(float);
double exp(double);
double fmin(double, double);
float rintf(float);
float sqrtf(float);
float tanhf(float);
}
#define INFINITY __builtin_inff()

struct alignas(8) uint2 { uint32_t x, y; };
struct alignas(16) uint4 { uint32_t x, y, z, w; };
struct alignas(8) int2 { int32_t x, y; };
struct alignas(16) int4 { int32_t x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
static inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// __global__ stays as it is: emulated_build.py looks for it after the preprocessor.
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __constant__ static const
#define __shared__ static __attribute__((section("lr_shared"), used))  // one block at a time: one copy will do
#define __align__(n) __attribute__((aligned(n)))
#define LR_INLINE static inline
#define LR_DYNAMIC_SHARED(type, name) type* const name = (type*)emu_dynamic_shared()

#define threadIdx (emu_current->thread)
#define blockIdx (emu_at.block)
#define blockDim (emu_at.block_dim)
#define gridDim (emu_at.grid_dim)

// Threads that meet.
static inline void __syncthreads(EMU_HERE) { emu_block_barrier(file, line); }
static inline void __syncwarp(uint32_t mask = ~0u, EMU_HERE) { emu_meet(EMU_SYNC, mask, nullptr, file, line); }
template <class T> static inline T __shfl_sync(uint32_t mask, T v, int source, int width = 32, EMU_HERE) {
  const uint32_t lane = emu_current->lane;
  return emu_shuffled(mask, v, (lane & ~(width - 1)) | (source & (width - 1)), file, line);
}
template <class T> static inline T __shfl_xor_sync(uint32_t mask, T v, int with, int width = 32, EMU_HERE) {
  const uint32_t lane = emu_current->lane, to = lane ^ with;
  return emu_shuffled(mask, v, to / width <= lane / width ? to : lane, file, line);
}
template <class T> static inline T __shfl_up_sync(uint32_t mask, T v, uint32_t by, int width = 32, EMU_HERE) {
  const uint32_t lane = emu_current->lane;
  return emu_shuffled(mask, v, lane % width >= by ? lane - by : lane, file, line);
}
template <class T> static inline T __shfl_down_sync(uint32_t mask, T v, uint32_t by, int width = 32, EMU_HERE) {
  const uint32_t lane = emu_current->lane;
  return emu_shuffled(mask, v, lane % width + by < (uint32_t)width ? lane + by : lane, file, line);
}
static inline uint32_t __ballot_sync(uint32_t mask, int predicate, EMU_HERE) {
  uint32_t lanes = predicate != 0;
  emu_meet(EMU_BALLOT, mask, &lanes, file, line);
  return lanes;
}
static inline int __any_sync(uint32_t mask, int predicate, EMU_HERE) { return __ballot_sync(mask, predicate, file, line) != 0; }
static inline int __all_sync(uint32_t mask, int predicate, EMU_HERE) { return __ballot_sync(mask, predicate, file, line) == mask; }

// Built-in functions.
static inline float __uint_as_float(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static inline uint32_t __float_as_uint(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline double __hiloint2double(int high, int low) {
  const uint64_t bits = (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
  double d;
  memcpy(&d, &bits, 8);
  return d;
}
static inline float __int_as_float(int i) { return __uint_as_float((uint32_t)i); }
static inline int __float_as_int(float f) { return (int)__float_as_uint(f); }
static inline int __float2int_rn(float f) { return (int)rintf(f); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline int __popc(uint32_t v) { return __builtin_popcount(v); }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline int __clz(int v) { return v ? __builtin_clz((uint32_t)v) : 32; }
static inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t both = (uint64_t)b << 32 | a;
  uint32_t r = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t s = selector >> 4 * i, byte = (uint32_t)(both >> 8 * (s & 7)) & 255;
    r |= (s & 8 ? (byte >> 7) * 255 : byte) << 8 * i;
  }
  return r;
}
template <class T> static inline T __ldg(const T* p) { return *p; }
template <class T> static inline T __ldcg(const T* p) { return *p; }
template <class T> static inline T min(T a, T b) { return a < b ? a : b; }
template <class T> static inline T max(T a, T b) { return a > b ? a : b; }

// ptx.cuh, instruction by instruction.
static inline float lr_half_to_float(uint16_t h) { _Float16 f; memcpy(&f, &h, 2); return (float)f; }
static inline uint16_t lr_float_to_half(float f) { _Float16 h = (_Float16)f; uint16_t u; memcpy(&u, &h, 2); return u; }
// Products of fp16 are exact in a double, and so is the sum where an operand is a small integer.
static inline uint32_t lr_fma_half2(uint32_t a, uint32_t b, uint32_t c) {
  _Float16 x[2], y[2], z[2];
  memcpy(x, &a, 4), memcpy(y, &b, 4), memcpy(z, &c, 4);
  for (int i = 0; i < 2; i++) z[i] = (_Float16)((double)x[i] * (double)y[i] + (double)z[i]);
  memcpy(&c, z, 4);
  return c;
}
static inline int lr_dp4a(uint32_t a, uint32_t b, int c) {
  for (int i = 0; i < 4; i++) c += (int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i);
  return c;
}
template <class C, int NC, int NA, int NB>
static inline void emu_multiply(emu_op op, C (&c)[NC], const uint32_t (&a)[NA], const uint32_t (&b)[NB], const char* file, int line) {
  emu_mma m;
  memcpy(m.a, a, sizeof a), memcpy(m.b, b, sizeof b), memcpy(m.c, c, sizeof c);
  emu_meet(op, ~0u, &m, file, line);
  memcpy(c, m.c, sizeof c);
}
#define EMU_MMA(name, op, type, nc, na, nb)                                                                             \
  static inline void name(type (&c)[nc], const uint32_t (&a)[na], const uint32_t (&b)[nb], EMU_HERE) {                  \
    emu_multiply(op, c, a, b, file, line);                                                                              \
  }
EMU_MMA(lr_m16n8k32_s8, EMU_M16N8K32_S8, int, 4, 4, 2)
EMU_MMA(lr_m16n8k32_s8u8, EMU_M16N8K32_S8U8, int, 4, 4, 2)
EMU_MMA(lr_m16n8k16_s8, EMU_M16N8K16_S8, int, 4, 2, 1)
EMU_MMA(lr_m16n8k16_f16, EMU_M16N8K16_F16, float, 4, 4, 2)
EMU_MMA(lr_m16n8k16_bf16, EMU_M16N8K16_BF16, float, 4, 4, 2)
EMU_MMA(lr_m8n8k16_s8, EMU_M8N8K16_S8, int, 2, 1, 1)
EMU_MMA(lr_m8n8k16_s8u8, EMU_M8N8K16_S8U8, int, 2, 1, 1)
EMU_MMA(lr_m16n8k8_f16, EMU_M16N8K8_F16, float, 4, 2, 1)

// Each thread reads its own row here, where bounds, alignment and races are checked.
static inline void lr_ldmatrix(uint32_t (&r)[4], const void* shared, EMU_HERE) {
  emu_matrix_row m{*(const emu_16_bytes*)shared, {}};
  emu_meet(EMU_LDMATRIX, ~0u, &m, file, line);
  memcpy(r, m.result, 16);
}
static inline void lr_ldmatrix_trans(uint32_t (&r)[4], const void* shared, EMU_HERE) {
  emu_matrix_row m{*(const emu_16_bytes*)shared, {}};
  emu_meet(EMU_LDMATRIX_TRANS, ~0u, &m, file, line);
  memcpy(r, m.result, 16);
}
// The bytes arrive no sooner than the wait that promises them: who forgets it reads what was there before.
static inline void lr_copy_async_or_zero(void* shared, const void* global, bool there, EMU_HERE) {
  emu_thread* t = emu_current;
  if (t->n_copies == EMU_MAX_COPIES) emu_fail("too many copies under way", file, line);
  t->copies[t->n_copies++] = {shared, there ? *(const emu_16_bytes*)global : emu_16_bytes{}, t->n_groups};
}
static inline void lr_copy_async(void* shared, const void* global, EMU_HERE) {
  lr_copy_async_or_zero(shared, global, true, file, line);
}
static inline void lr_copy_commit() { emu_current->n_groups++; }
template <int LEFT> static inline void lr_copy_wait() {
  emu_thread* t = emu_current;
  int kept = 0;
  for (int i = 0; i < t->n_copies; i++)
    if (t->copies[i].group < t->n_groups - LEFT) *(emu_16_bytes*)t->copies[i].to = t->copies[i].data;
    else t->copies[kept++] = t->copies[i];
  t->n_copies = kept;
}

// Every instruction that CUDA C++ has no name for, as PTX: here and nowhere else. kernels/emulator/cuda.h stands in for this
// file on a CPU. Operands of mma: the fragment layouts of the PTX manual, as in kernels/emulator/warp.cpp.
#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define LR_ARCH (__CUDA_ARCH__ / 10)
#define LR_INLINE static __device__ __forceinline__
// Only 16 bytes of alignment are promised.
#define LR_DYNAMIC_SHARED(type, name)                        \
  extern __shared__ __align__(16) uint8_t lr_dynamic_shared[]; \
  type* const name = (type*)lr_dynamic_shared

LR_INLINE float lr_half_to_float(uint16_t h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
LR_INLINE uint16_t lr_float_to_half(float f) {  // to nearest, ties to even
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
// a · b + c of two pairs of fp16, each rounded once.
LR_INLINE uint32_t lr_fma_half2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
// c plus four products of signed bytes.
LR_INLINE int lr_dp4a(uint32_t a, uint32_t b, int c) { return __dp4a((int)a, (int)b, c); }

#if LR_ARCH >= 80
#define LR_MMA_4_2(name, instruction, type, letter)                                                         \
  LR_INLINE void name(type (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {                       \
    asm("mma.sync.aligned." instruction " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"            \
        : "+" letter(c[0]), "+" letter(c[1]), "+" letter(c[2]), "+" letter(c[3])                            \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                \
  }
LR_MMA_4_2(lr_m16n8k32_s8, "m16n8k32.row.col.s32.s8.s8.s32", int, "r")
LR_MMA_4_2(lr_m16n8k32_s8u8, "m16n8k32.row.col.s32.s8.u8.s32", int, "r")
LR_MMA_4_2(lr_m16n8k16_f16, "m16n8k16.row.col.f32.f16.f16.f32", float, "f")
LR_MMA_4_2(lr_m16n8k16_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")
LR_INLINE void lr_m16n8k16_s8(int (&c)[4], const uint32_t (&a)[2], const uint32_t (&b)[1]) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
// 16 bytes to shared memory, behind the back of the registers and of L1; zeros where they are not `there`.
LR_INLINE void lr_copy_async_or_zero(void* shared, const void* global, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               ::"r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(global), "r"(there ? 16 : 0) : "memory");
}
LR_INLINE void lr_copy_async(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               ::"r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(global) : "memory");
}
// Copies asked for since the last commit are a group; a wait leaves at most the newest LEFT groups under way.
LR_INLINE void lr_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> LR_INLINE void lr_copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }
#else  // Turing: smaller tiles, and copies that are done when they are asked for
#define LR_MMA_1_1(name, types)                                                            \
  LR_INLINE void name(int (&c)[2], const uint32_t (&a)[1], const uint32_t (&b)[1]) {       \
    asm("mma.sync.aligned.m8n8k16.row.col.s32." types ".s32 {%0,%1}, {%2}, {%3}, {%0,%1};" \
        : "+r"(c[0]), "+r"(c[1])                                                           \
        : "r"(a[0]), "r"(b[0]));                                                           \
  }
LR_MMA_1_1(lr_m8n8k16_s8, "s8.s8")
LR_MMA_1_1(lr_m8n8k16_s8u8, "s8.u8")
LR_INLINE void lr_m16n8k8_f16(float (&c)[4], const uint32_t (&a)[2], const uint32_t (&b)[1]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
LR_INLINE void lr_copy_async_or_zero(void* shared, const void* global, bool there) {
  *(uint4*)shared = there ? *(const uint4*)global : make_uint4(0, 0, 0, 0);
}
LR_INLINE void lr_copy_async(void* shared, const void* global) { *(uint4*)shared = *(const uint4*)global; }
LR_INLINE void lr_copy_commit() {}
template <int LEFT> LR_INLINE void lr_copy_wait() {}
#endif

// Four 8×8 matrices of 16 bits: lane 8j + i names row i of matrix j; register j of lane 4g + t has columns 2t, 2t + 1 of
// row g, or with `trans` rows 2t, 2t + 1 of column g.
LR_INLINE void lr_ldmatrix(uint32_t (&r)[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((uint32_t)__cvta_generic_to_shared(shared)) : "memory");
}
LR_INLINE void lr_ldmatrix_trans(uint32_t (&r)[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((uint32_t)__cvta_generic_to_shared(shared)) : "memory");
}

// One name of device.cuh a kernel, operands as they come: a GPU and the emulator have to agree on every one of them.
#include "device.cuh"

template <int N, class T> LR_INLINE void load(T (&to)[N], const T* from) {
  for (int i = 0; i < N; i++) to[i] = from[threadIdx.x * N + i];
}
template <int N, class T> LR_INLINE void store(T* to, const T (&from)[N]) {
  for (int i = 0; i < N; i++) to[threadIdx.x * N + i] = from[i];
}
// One warp. c holds the sums so far.
#define CHECK_MMA(name, type, na, nb)                                                                                 \
  extern "C" __global__ void __launch_bounds__(32) check_##name(const uint32_t* a, const uint32_t* b, type* c) {      \
    uint32_t as[na], bs[nb];                                                                                          \
    type cs[4];                                                                                                       \
    load(as, a), load(bs, b), load(cs, c);                                                                            \
    lr_##name(cs, as, bs);                                                                                            \
    store(c, cs);                                                                                                     \
  }
CHECK_MMA(mma_s8, int, 4, 2)
CHECK_MMA(mma_s8u8, int, 4, 2)
CHECK_MMA(mma_s8_k16, int, 2, 1)
CHECK_MMA(mma_f16, float, 4, 2)
CHECK_MMA(mma_bf16, float, 4, 2)

// One warp; a lane brings a row of 8 numbers, and another one names it.
extern "C" __global__ void __launch_bounds__(32) check_ldmatrix(const uint4* rows, uint32_t* plain, uint32_t* transposed) {
  __shared__ uint4 shared[32];
  shared[31 - threadIdx.x] = rows[31 - threadIdx.x];
  __syncwarp();
  uint32_t r[4];
  lr_ldmatrix(r, shared + threadIdx.x);
  store(plain, r);
  lr_ldmatrix_trans(r, shared + threadIdx.x);
  store(transposed, r);
}
// Two groups of copies from one block of threads; what a thread reads, its neighbour has copied.
extern "C" __global__ void __launch_bounds__(64) check_copy_async(const uint4* from, uint4* to, int n) {
  LR_DYNAMIC_SHARED(uint4, shared);
  const int i = threadIdx.x, next = (i + 1) % blockDim.x;
  lr_copy_async(shared + i, from + i);
  lr_copy_commit();
  lr_copy_async_or_zero(shared + blockDim.x + i, from + (i < n ? i : 0), i < n);
  lr_copy_commit();
  lr_copy_wait<1>();
  __syncthreads();
  to[i] = shared[next];
  lr_copy_wait<0>();
  __syncthreads();
  to[blockDim.x + i] = shared[blockDim.x + next];
}
extern "C" __global__ void __launch_bounds__(64) check_dp4a(const uint32_t* a, const uint32_t* b, int* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = lr_dp4a(a[i], b[i], c[i]);
}
// Pairs of fp16.
extern "C" __global__ void __launch_bounds__(64) check_fma_half2(const uint32_t* a, const uint32_t* b, uint32_t* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = lr_fma_half2(a[i], b[i], c[i]);
}
// Numbers to half and bfloat16 and back, 2^x and e^x.
extern "C" __global__ void __launch_bounds__(64) check_numbers(const float* x, uint16_t* half, uint16_t* bf16,
                                                                   float* of_half, float* of_bf16, float* exp2, float* exp,
                                                                   int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  half[i] = lr_float_to_half(x[i]), bf16[i] = lr_float_to_bf16(x[i]);
  of_half[i] = lr_half_to_float(half[i]), of_bf16[i] = lr_bf16_to_float(bf16[i]);
  exp2[i] = lr_exp2(x[i]), exp[i] = lr_exp(x[i]);
}
// One warp: what the lane at a distance has, both ways, and who has an odd number.
extern "C" __global__ void __launch_bounds__(32) check_shuffles(const int* x, int by, int* to, uint32_t* odd) {
  const int lane = threadIdx.x, v = x[lane];
  to[lane] = __shfl_sync(0xffffffffu, v, by);
  to[32 + lane] = __shfl_xor_sync(0xffffffffu, v, by);
  to[64 + lane] = __shfl_up_sync(0xffffffffu, v, by);
  to[96 + lane] = __shfl_down_sync(0xffffffffu, v, by);
  odd[lane] = __ballot_sync(0xffffffffu, v % 2);
}

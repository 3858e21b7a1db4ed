// Functions of floats and sums over threads that several kernels share: IEEE operations in a fixed order.
#pragma once
#include "device.cuh"

LR_INLINE float lr_sigmoid(float x) { return 1.f / (1.f + lr_exp(-x)); }
LR_INLINE float lr_softcap(float x, float softcap) { return softcap * tanhf(x / softcap); }
LR_INLINE bool lr_is_finite(float x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }

// A number as an integer of the same order, NaN above all and 0 like -0; in front of what makes of equals the lower id the
// greater. 0 is less than every key.
LR_INLINE uint64_t lr_key(float x, int id) {
  const uint32_t bits = x != x ? 0x7fc00000u : x == 0.f ? 0u : __float_as_uint(x);
  return (uint64_t)(bits & 0x80000000u ? ~bits : bits | 0x80000000u) << 32 | ~(uint32_t)id;
}
LR_INLINE float lr_value(uint64_t key) {
  const uint32_t ordered = (uint32_t)(key >> 32);
  return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

// The same sum in every lane.
LR_INLINE float lr_warp_sum(float v) {
#pragma unroll
  for (int by = 16; by; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
  return v;
}
// The same sum in every thread of a block; `sums` [32] is shared memory that nobody else uses meanwhile.
LR_INLINE float lr_block_sum(float v, float* sums) {
  v = lr_warp_sum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  float total = 0.f;
  for (int warp = 0; warp < (int)blockDim.x / 32; warp++) total += sums[warp];
  return total;
}

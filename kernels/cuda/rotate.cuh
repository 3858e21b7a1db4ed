// A head turned by a Hadamard matrix.
#pragma once
#include "device.cuh"
#define HEAD_THREADS 128  // of a block that has a head of one row

// Times an orthonormal Hadamard matrix over blocks of the greatest power of two that divides head_dim: the fast
// Walsh-Hadamard transform, strides ascending. All threads together; x [head_dim] is there for all afterwards.
LR_INLINE void lr_rotate(float* x, int head_dim) {
  const int size = head_dim & -head_dim;
  for (int stride = 1; stride < size; stride *= 2) {
    __syncthreads();
    for (int i = threadIdx.x; i < head_dim / 2; i += HEAD_THREADS) {
      const int low = 2 * i - (i & (stride - 1)), high = low + stride;
      const float a = x[low], b = x[high];
      x[low] = a + b, x[high] = a - b;
    }
  }
  __syncthreads();
  const float scale = 1.f / sqrtf((float)size);
  for (int d = threadIdx.x; d < head_dim; d += HEAD_THREADS) x[d] *= scale;
  __syncthreads();
}

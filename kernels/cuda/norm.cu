// RMS norm, and rows as the int8 tensor cores read them. A block of threads has the numbers of one norm.
#include "numbers.cuh"
#include "q8.cuh"

// out = residual + x / rms(x) · weight, of `size` numbers a block; out, residual and codes may be null. Out may be x or
// the residual.
extern "C" __global__ void __launch_bounds__(512) rms_norm(const float* x, const float* weight, const float* residual,
    float* out, uint8_t* codes, int2* groups, int stride, int padded_rows, int width, int size, float eps) {
  __shared__ float sums[32];
  const int row = blockIdx.x, first = blockIdx.y * size, step = 4 * blockDim.x;
  const int64_t at = (int64_t)row * width + first;
  float sum = 0.f;
  for (int c = 4 * threadIdx.x; c < size; c += step)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float v = c + j < size ? x[at + c + j] : 0.f;
      sum = __fmaf_rn(v, v, sum);
    }
  const float scale = 1.f / sqrtf(lr_block_sum(sum, sums) / (float)size + eps);

  const bool last = first + size == width;
  const int end = codes && last ? stride - first : size;
  for (int base = 0; base < end; base += step) {  // whole warps: lanes quantise together
    const int c = base + 4 * threadIdx.x;
    float y[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const bool there = c + j < size;
      y[j] = there ? x[at + c + j] * scale * weight[c + j] : 0.f;
      if (there && residual) y[j] = residual[at + c + j] + y[j];
      if (there && out) out[at + c + j] = y[j];
    }
    if (codes) lr_store_q8({codes, groups, c < end ? stride : 0, padded_rows}, row, first + c, y);
  }
}

// A block of threads has 1,024 columns of a row.
extern "C" __global__ void __launch_bounds__(256) quantize(const float* x, uint8_t* codes, int2* groups, int stride,
    int padded_rows, int width) {
  const int row = blockIdx.x, c = blockIdx.y * 1024 + 4 * threadIdx.x;
  float y[4];
#pragma unroll
  for (int j = 0; j < 4; j++) y[j] = c + j < width ? x[(int64_t)row * width + c + j] : 0.f;
  lr_store_q8({codes, groups, stride, padded_rows}, row, c, y);
}

// RMS norm with a gate silu(z), in place: x / rms(x) · weight · silu(z), or with gate_first g / rms(g) · weight of
// g = x · silu(z). A block of threads has the `size` numbers of one norm.
#include "states.cuh"

// weight: of so many numbers as it says, which is one norm's or a row's.
extern "C" __global__ void __launch_bounds__(512) gated_norm(float* x, const float* z, const float* weight, int width,
    int size, int weight_size, int gate_first, float eps) {
  __shared__ float sums[32];
  const int first = blockIdx.y * size;
  const int64_t at = (int64_t)blockIdx.x * width + first;
  const float* scales = weight + first % weight_size;
  float sum = 0.f;
  for (int c = threadIdx.x; c < size; c += blockDim.x) {
    float v = __ldcg(x + at + c);
    if (gate_first) v *= lr_silu(__ldcg(z + at + c));
    sum = __fmaf_rn(v, v, sum);
  }
  const float scale = 1.f / sqrtf(lr_block_sum(sum, sums) / (float)size + eps);
  for (int c = threadIdx.x; c < size; c += blockDim.x)
    x[at + c] = __ldcg(x + at + c) * lr_silu(__ldcg(z + at + c)) * scale * __ldg(scales + c);
}

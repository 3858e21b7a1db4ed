// RMS norm with a gate silu(z), in place: x / rms(x) * weight * silu(z), or with gate_first g / rms(g) * weight of
// g = x * silu(z). A threadgroup has the `size` numbers of one norm.
#include "states.metal"

// weight: of so many numbers as it says, which is one norm's or a row's.
LR_THREADS(256)
kernel void gated_norm(device float* x [[buffer(0)]], device const float* z [[buffer(1)]],
                       device const float* weight [[buffer(2)]], constant int& width [[buffer(3)]],
                       constant int& size [[buffer(4)]], constant int& weight_size [[buffer(5)]],
                       constant int& gate_first [[buffer(6)]], constant float& eps [[buffer(7)]],
                       uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                       uint3 threads [[threads_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float sums[8];
  const int first = int(group.y) * size;
  const long row = long(group.x) * width + first;
  float sum = 0.f;
  for (int c = int(at); c < size; c += int(threads.x)) {
    const float v = gate_first != 0 ? x[row + c] * lr_silu(z[row + c]) : x[row + c];
    sum = fma(v, v, sum);
  }
  const float scale = lr_norm_scale(lr_group_sum(sum, sums, simdgroup, lane, threads.x / 32), size, eps);
  for (int c = int(at); c < size; c += int(threads.x))
    x[row + c] = x[row + c] * lr_silu(z[row + c]) * scale * weight[first % weight_size + c];
}

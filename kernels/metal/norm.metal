// out = residual + x / rms(x) * weight, of `size` numbers a group; residual may be null, out may be x or the residual.
#include "numbers.metal"

LR_THREADS(256)
kernel void rms_norm(device const float* x [[buffer(0)]], device const float* weight [[buffer(1)]],
                     device const float* residual [[buffer(2)]], device float* out [[buffer(3)]],
                     constant int& width [[buffer(4)]], constant int& size [[buffer(5)]], constant float& eps [[buffer(6)]],
                     constant uint& given [[buffer(7)]], uint3 group [[threadgroup_position_in_grid]],
                     uint at [[thread_index_in_threadgroup]], uint3 threads [[threads_per_threadgroup]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float sums[8];
  const long first = long(group.x) * width + int(group.y) * size;
  const float squares = lr_group_sum(lr_squares(x + first, size, at), sums, simdgroup, lane, threads.x / 32);
  const float scale = lr_norm_scale(squares, size, eps);
  for (int column = 4 * int(at); column < size; column += 1024) {
    float v[4];
    lr_four(v, x + first, column, size);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int c = column + j;
      if (c >= size) break;
      const float scaled = v[j] * scale;
      out[first + c] = LR_GIVEN(2) ? fma(scaled, weight[c], residual[first + c]) : scaled * weight[c];
    }
  }
}

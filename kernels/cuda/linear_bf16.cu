// What is before and after a library's product of bf16 matrices, which reads spans of a prompt in bulk: numbers as it takes
// them, and what becomes of its sums. gridDim.y: rows.
#include "linear.cuh"

// n: numbers of a row, whole groups of 32; a thread takes four.
extern "C" __global__ void __launch_bounds__(256) to_bf16(const float4* __restrict__ x, uint2* __restrict__ out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n / 4) return;
  const int64_t at = (int64_t)blockIdx.y * (n / 4) + i;
  const float4 v = x[at];
  out[at] = make_uint2(lr_pack_bf16x2(v.x, v.y), lr_pack_bf16x2(v.z, v.w));
}

// sums: bf16, rows of `width`, the outs of several matrices side by side: this one's from column `first` on. With a gate
// its sums are those from `gate_first` on.
extern "C" __global__ void __launch_bounds__(256) store_sums(const uint16_t* __restrict__ sums, const float* bias,
    float scale, const float* gate_bias, float gate_scale, const float* residual, float* out, float out_scale, int n_out, int width, int first,
    int gate_first) {
  const int n = blockIdx.x * 256 + threadIdx.x, m = blockIdx.y;
  if (n >= n_out) return;
  const uint16_t* const row = sums + (int64_t)m * width;
  const lr_linear to = {nullptr, bias, out, scale, n_out}, of_gate = {nullptr, gate_bias, nullptr, gate_scale, n_out};
  const float y = lr_biased(to, n, lr_bf16_to_float(row[first + n]));
#if ACT >= 1 && ACT <= 3
  const float gate = lr_biased(of_gate, n, lr_bf16_to_float(row[gate_first + n]));
  lr_store(to, m, n, y, &gate, residual, out_scale);
#else
  lr_store(to, m, n, y, nullptr, residual, out_scale);
#endif
}

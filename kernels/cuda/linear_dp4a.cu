// The twin of linear.cu without tensor cores, to the same bits: blockIdx.y is the row of x.
#include "dot.cuh"
#include "linear.cuh"

extern "C" __global__ void __launch_bounds__(256 * SIDES, 2 / SIDES)
linear_dp4a(LINEAR_MATRICES, const uint4* __restrict__ x, const int2* __restrict__ x_groups, const float* residual,
            float out_scale, int n_tiles, int n_x, int padded_x) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, segment = threadIdx.x / 32 % N_SEGMENTS;
  const int side = threadIdx.x / (32 * N_SEGMENTS), m = blockIdx.y;
  const lr_linear all[3] = LINEAR_LIST;
  int row_tile;
  const lr_linear of = lr_linear_of_block(all, 16, row_tile);
  const lr_row_tile at = lr_find_row_tile(side ? weights1 : of.weights, of.n_out, n_tiles, row_tile, lane);
  const int length = (n_tiles + N_SEGMENTS - 1) / N_SEGMENTS, first = segment * length;
  const int end = min(first + length, n_tiles);

  float sum = 0.f;  // lanes with an even t have row g, the others row g + 8
#pragma unroll 2
  for (int tile = first; tile < end; tile++) {
    lr_tile loaded;
    lr_load_tile(loaded, at, tile);
    lr_weights w;
    lr_unpack(w, loaded);
    const uint4 v = __ldcg(x + ((int64_t)m * n_tiles + tile) * 4 + t);
    const uint32_t xs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int q = 0; q < N_GROUPS; q++) {
      const int2 group = __ldcg(x_groups + (2 * tile + q * GROUP / 32) * padded_x + m);
      int dot[2] = {0, 0}, x_sum = 0;
#pragma unroll
      for (int i = q * GROUP / 16; i < (q + 1) * GROUP / 16; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) dot[h] = lr_dp4a(w.codes[2 * i + h], xs[i], dot[h]);
        if (HAS_MINIMA) x_sum = lr_dp4a(0x01010101u, xs[i], x_sum);
      }
      // Four lanes have the columns of a row: two of them end with row g, two with row g + 8.
      int mine = t % 2 ? dot[1] : dot[0];
      mine += __shfl_xor_sync(0xffffffffu, t % 2 ? dot[0] : dot[1], 1);
      mine += __shfl_xor_sync(0xffffffffu, mine, 2);
      if (HAS_MINIMA && GROUP == 16) {
        x_sum += __shfl_xor_sync(0xffffffffu, x_sum, 1);
        x_sum += __shfl_xor_sync(0xffffffffu, x_sum, 2);
      } else {
        x_sum = group.y;
      }
      sum = lr_add_dot(sum, DOT_START + mine, t % 2 ? w.scale[q][1] : w.scale[q][0],
                       t % 2 ? w.minimum[q][1] : w.minimum[q][0], __int_as_float(group.x), x_sum);
    }
  }

  __shared__ float partial[SIDES][N_SEGMENTS][16];
  if (t < 2) partial[side][segment][g + 8 * t] = sum;
  __syncthreads();
  const int row = threadIdx.x, n = row_tile * 16 + row;
  if (row >= 16 || n >= of.n_out || m >= n_x) return;
  float total[SIDES] = {};
#pragma unroll
  for (int s = 0; s < SIDES; s++)
    for (int i = 0; i < N_SEGMENTS; i++) total[s] += partial[s][i][row];
  lr_store_totals(of, all[1], m, n, total, residual, out_scale);
}

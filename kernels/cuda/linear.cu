// A linear for 1 to 8 rows of x in one pass over the weights, which are the 16-row operand of the tensor cores.
// A block has a row tile, and each of its warps a segment of the columns: the unit of exactness is the sum of a segment.
#include "dot.cuh"
#include "linear.cuh"
// Tiles a warp has under way: as many as 128 registers hold.
#define DEPTH (GROUP == 16 || HAS_MINIMA || LOW_BITS == 8 ? 2 : 3)

struct Step {
  lr_tile weights;
  uint4 x;
  int4 groups[2];
};

extern "C" __global__ void __launch_bounds__(256 * SIDES, 2 / SIDES)
linear(LINEAR_MATRICES, const uint4* __restrict__ x, const int4* __restrict__ x_groups, const float* residual,
       float out_scale, int n_tiles, int n_x, int padded_x) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, segment = threadIdx.x / 32 % N_SEGMENTS;
  const int side = threadIdx.x / (32 * N_SEGMENTS);
  const lr_linear all[3] = LINEAR_LIST;
  int row_tile;
  const lr_linear of = lr_linear_of_block(all, 16, row_tile);
  const lr_row_tile at = lr_find_row_tile(side ? weights1 : of.weights, of.n_out, n_tiles, row_tile, lane);
  const int length = (n_tiles + N_SEGMENTS - 1) / N_SEGMENTS, first = segment * length;
  const int end = min(first + length, n_tiles);

  Step steps[DEPTH];
#pragma unroll
  for (int i = 0; i < DEPTH; i++)
    if (first + i < end) lr_load_tile(steps[i].weights, at, first + i);
  // Up to here nothing of x is needed.
  const uint4* const my_x = x + (int64_t)g * n_tiles * 4 + t;
  const uint8_t* const my_groups = (const uint8_t*)(x_groups + t);
  const int half = padded_x * 8;  // bytes of the groups of 32 columns
  const auto fetch_x = [&](Step& step, int tile) {
    if (g < n_x) step.x = __ldcg(my_x + (int64_t)tile * 4);
#pragma unroll
    for (int k = 0; k < 2; k++) step.groups[k] = __ldcg((const int4*)(my_groups + (int64_t)(2 * tile + k) * half));
  };
#pragma unroll
  for (int i = 0; i < DEPTH; i++) {
    steps[i].x = make_uint4(0, 0, 0, 0);  // a lane whose row is not there reads nothing
    if (first + i < end) fetch_x(steps[i], first + i);
  }

  float sum[4] = {0.f, 0.f, 0.f, 0.f};
  for (int tile = first; tile < end; tile += DEPTH) {
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
      if (tile + i >= end) break;
      lr_weights w;
      lr_unpack(w, steps[i].weights);
      lr_multiply(sum, w, steps[i].x, steps[i].groups);
      if (tile + i + DEPTH < end) {
        lr_load_tile(steps[i].weights, at, tile + i + DEPTH);
        fetch_x(steps[i], tile + i + DEPTH);
      }
    }
  }

  __shared__ float partial[SIDES][N_SEGMENTS][16][9];
#pragma unroll
  for (int j = 0; j < 4; j++) partial[side][segment][g + 8 * (j / 2)][2 * t + j % 2] = sum[j];
  __syncthreads();
  const int row = threadIdx.x % 16, m = threadIdx.x / 16, n = row_tile * 16 + row;
  if (m >= n_x || n >= of.n_out) return;
  float total[SIDES] = {};
#pragma unroll
  for (int s = 0; s < SIDES; s++)
    for (int i = 0; i < N_SEGMENTS; i++) total[s] += partial[s][i][row][m];
#if SIDES == 2
  const float gate = lr_biased(all[0], n, total[0]);
  lr_store(of, m, n, lr_biased(all[1], n, total[1]), &gate, residual, out_scale);
#else
  lr_store(of, m, n, lr_biased(of, n, total[0]), nullptr, residual, out_scale);
#endif
}

// Attention over keys and values in f32, any number of rows: as in attention.cu a block of threads has 512 positions of one
// KV head for one row, a warp one block of 64 keys, but sums are plain float.
#include "attention.cuh"
#define DIMS 32  // of the values, at a time

struct Shared {
  float q[COLUMNS][DIM], sink_q[COLUMNS][DIM];
  float p[UNIT_BLOCKS][COLUMNS][KEYS];  // weights
  float o[UNIT_BLOCKS][COLUMNS][DIMS];
  float m[UNIT_BLOCKS][COLUMNS], l[UNIT_BLOCKS][COLUMNS];
};

// Scores of a lane's two keys, `lane` and lane + 32, for eight queries. Hidden keys may hold anything: they are not read.
LR_INLINE void lr_score(float (&s)[COLUMNS][2], const float (*q)[DIM], const float* keys, int stride, int low, int high) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int key = threadIdx.x % 32 + 32 * i;
    const bool seen = key >= low && key < high;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) s[c][i] = seen ? 0.f : -INFINITY;
    for (int d = 0; seen && d < DIM; d += 4) {
      const float4 k = *(const float4*)(keys + (int64_t)key * stride + d);
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) {
        s[c][i] = __fmaf_rn(q[c][d], k.x, s[c][i]), s[c][i] = __fmaf_rn(q[c][d + 1], k.y, s[c][i]);
        s[c][i] = __fmaf_rn(q[c][d + 2], k.z, s[c][i]), s[c][i] = __fmaf_rn(q[c][d + 3], k.w, s[c][i]);
      }
    }
  }
}

// The arguments of attention.cu; those without a name are for codes alone.
extern "C" __global__ void __launch_bounds__(32 * UNIT_BLOCKS, 1) attend_units(const float* q, const float* sink_q,
    const float* keys, const uint16_t*, const float* values, const uint16_t*, const uint8_t*, const uint8_t*,
    const int* positions, const int* row_sequence, const int* table, const int* table_at, const int* sink, const int*,
    const int*, const int* rows, float* parts, int n_heads, int n_kv_heads, int n_layers, int index, int window,
    int sink_window, float scale, float softcap) {
  const int row = rows ? rows[blockIdx.z] : blockIdx.z, position = row < 0 ? -1 : positions[row];
  const Sight sight = {window, sink_window};
  const int unit = lr_unit(sight, position, blockIdx.x);
  if (unit * UNIT_TOKENS > position) return;
  const int sequence = row_sequence[row];
  LR_DYNAMIC_SHARED(Shared, shared);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = n_heads / n_kv_heads, tiles = (group + COLUMNS - 1) / COLUMNS;
  const int kv_head = blockIdx.y / tiles, first = blockIdx.y % tiles * COLUMNS;  // first: of the group's heads
  const int64_t head = (int64_t)row * n_heads + kv_head * group + first;
  const int n_columns = min(group - first, COLUMNS);
  for (int i = threadIdx.x; i < COLUMNS * DIM; i += 32 * UNIT_BLOCKS) {
    const bool there = i < n_columns * DIM;
    shared->q[i / DIM][i % DIM] = there ? q[head * DIM + i] : 0.f;
    shared->sink_q[i / DIM][i % DIM] = there && sink_q ? sink_q[head * DIM + i] : 0.f;
  }
  __syncthreads();

  const int number = unit * UNIT_BLOCKS + warp, stride = n_kv_heads * DIM;
  int low, high;
  sight.slots(position, number, low, high);
  int64_t at = 0;
  if (low < high) {
    const int64_t block = number ? table[table_at[sequence] + number] : sink[sequence];
    at = (block * n_layers + index) * KEYS * stride + kv_head * DIM;
    float s[COLUMNS][2];
    lr_score(s, number == 0 && sink_q ? shared->sink_q : shared->q, keys + at, stride, low, high);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      for (int i = 0; i < 2; i++) {
        s[c][i] *= scale;
        const bool there = lane + 32 * i >= low && lane + 32 * i < high;
        if (softcap != 0.f && there) s[c][i] = lr_softcap(s[c][i], softcap) * LOG2_E;
      }
      float m = fmaxf(s[c][0], s[c][1]), l = 0.f;
#pragma unroll
      for (int by = 16; by; by /= 2) m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, by));
      for (int i = 0; i < 2; i++) {
        const float p = lr_exp2(s[c][i] - (m == -INFINITY ? 0.f : m));
        shared->p[warp][c][lane + 32 * i] = p, l += p;
      }
      l = lr_warp_sum(l);
      if (lane == 0) shared->m[warp][c] = m, shared->l[warp][c] = l;
    }
  }
  for (int first_dim = 0; first_dim < DIM; first_dim += DIMS) {
    const int d = first_dim + lane;
    __syncthreads();  // weights are there; o is read no more
    float sum[COLUMNS] = {};
    for (int key = low; d < DIM && key < high; key++) {
      const float v = values[at + (int64_t)key * stride + d];
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) sum[c] = __fmaf_rn(shared->p[warp][c][key], v, sum[c]);
    }
    for (int c = 0; c < COLUMNS; c++) shared->o[warp][c][lane] = sum[c];
    __syncthreads();
    // A warp merges what the others have of its column.
    float o = 0.f, m = -INFINITY, l = 0.f;
    for (int w = 0; w < UNIT_BLOCKS; w++)
      if (sight.sees(position, unit * UNIT_BLOCKS + w))
        o = lr_merge(m, l, shared->m[w][warp], shared->l[w][warp])(o, shared->o[w][warp][lane]);
    float* to = parts + ((((int64_t)blockIdx.z - row) * n_heads + head + warp) * gridDim.x + blockIdx.x) * (DIM + 2);
    if (warp < n_columns && d < DIM) to[d] = o;
    if (warp < n_columns && first_dim == 0 && lane == 0) to[DIM] = m, to[DIM + 1] = l;
  }
}

// The selective scan of Mamba-2, row by row: how a text is cut into steps changes no bit. A block of threads has 32 columns of
// a head, KEYS keys each; gated_norm.cu follows.
#include "head_state.cuh"

// Rows as the scan reads them.
struct Tile {
  float b[ROWS][PADDED], c[ROWS][PADDED];
  float x[ROWS][COLUMNS];
  float step[ROWS], decay[ROWS];
};

struct Heads {
  const float *xbc, *dt, *decay, *dt_bias;
  int n_heads, n_keys, width;  // keys of all groups, numbers of a row of xbc
  int head, b_at, x_at, n_columns;
};

// The numbers of a row that a lane reads.
struct Row {
  float b[LANE_KEYS], c[LANE_KEYS], x, dt;
};

LR_INLINE Row lr_ask_row(const Heads& of, int64_t row) {
  const int lane = threadIdx.x % 32;
  const float *xbc = of.xbc + row * of.width, *b = xbc + of.b_at, *c = b + of.n_keys;
  Row asked;
  lr_ask_keys(asked.b, b);
  lr_ask_keys(asked.c, c);
  asked.x = lane < of.n_columns ? __ldcg(xbc + of.x_at + lane) : 0.f;
  asked.dt = __ldcg(of.dt + row * of.n_heads + of.head);
  return asked;
}
LR_INLINE void lr_put_row(Tile& tile, const Heads& of, int r, const Row& asked) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < LANE_KEYS; j++) {
    const int i = lane + 32 * j;
    if (i < PADDED) tile.b[r][i] = asked.b[j], tile.c[r][i] = asked.c[j];
  }
  tile.x[r][lane] = asked.x;
  if (lane) return;
  const float step = lr_softplus(asked.dt + __ldg(of.dt_bias + of.head));
  tile.step[r] = step;
  tile.decay[r] = lr_exp(__ldg(of.decay + of.head) * step);
}

// S = decay · S + b ⊗ step · x -> Sᵀc + skip · x
LR_INLINE float lr_scan_row(HeadState& state, const Tile& tile, int r, float skip) {
  const float x = tile.x[r][lr_column()], added = tile.step[r] * x, decay = tile.decay[r];
  float read = 0.f;
#pragma unroll
  for (int i = 0; i < PIECES; i++) {
    const float4 b = state.piece(tile.b[r], i), c = state.piece(tile.c[r], i);
    const float bs[4] = {b.x, b.y, b.z, b.w}, cs[4] = {c.x, c.y, c.z, c.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      state.s[i][j] = __fmaf_rn(bs[j], added, decay * state.s[i][j]);
      read = __fmaf_rn(state.s[i][j], cs[j], read);
    }
  }
  return __fmaf_rn(skip, x, lr_parts_sum(read));
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) selective_scan(const float* xbc, const float* dt, const float* decay,
    const float* dt_bias, const float* skip, float* numbers, const int* before, const int* after, const int* first_row,
    const int* n_rows, float* out, int n_sequences, int n_heads, int n_groups, int columns, int block_numbers, int state_at) {
  __shared__ Tile tile;
  const int head = blockIdx.y, first_column = blockIdx.x * COLUMNS, column = first_column + lr_column();
  const int n_x = n_heads * columns, n_keys = n_groups * KEYS, b_at = n_x + head / (n_heads / n_groups) * KEYS;
  const Heads heads = {xbc,  dt,   decay, dt_bias, n_heads, n_keys, n_x + 2 * n_keys,
                       head, b_at, head * columns + first_column, columns - first_column};
  const Walk walk = {{numbers, block_numbers, state_at + (int64_t)head * KEYS * columns + column},
                     before, after, first_row, n_rows, out + head * columns + column, n_sequences, n_heads * columns};
  const float d = __ldg(skip + head);
  HeadState state(columns, column < columns);
  lr_walk_texts<Row>(
      walk, state, [&](int64_t row) { return lr_ask_row(heads, row); },
      [&](int r, const Row& asked) { lr_put_row(tile, heads, r, asked); },
      [&](HeadState& s, int r) { return lr_scan_row(s, tile, r, d); });
}

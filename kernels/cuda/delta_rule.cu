// The gated delta rule, row by row: how a text is cut into steps changes no bit. A block of threads has 32 columns of a value
// head, KEYS keys each; gated_norm.cu follows.
#include "head_state.cuh"

// Rows as the rule reads them.
struct Tile {
  float q[ROWS][PADDED], k[ROWS][PADDED];  // at length 1, q over sqrt(KEYS) besides
  float v[ROWS][COLUMNS];
  float decay[ROWS], share[ROWS], qk[ROWS];
};

struct Heads {
  const float *qkv, *alpha, *beta, *decay, *dt_bias;
  int n_value_heads, n_keys, width;  // keys of all heads, numbers of a row of qkv
  int head, key_at, value_at, n_columns;
};

// The numbers of a row that a lane reads.
struct Row {
  float q[LANE_KEYS], k[LANE_KEYS], v, alpha, beta;
};

LR_INLINE Row lr_ask_row(const Heads& of, int64_t row) {
  const int lane = threadIdx.x % 32;
  const float *qkv = of.qkv + row * of.width, *q = qkv + of.key_at, *k = q + of.n_keys;
  Row asked;
  lr_ask_keys(asked.q, q);
  lr_ask_keys(asked.k, k);
  asked.v = lane < of.n_columns ? __ldcg(qkv + of.value_at + lane) : 0.f;
  asked.alpha = __ldcg(of.alpha + row * of.n_value_heads + of.head);
  asked.beta = __ldcg(of.beta + row * of.n_value_heads + of.head);
  return asked;
}
LR_INLINE void lr_put_row(Tile& tile, const Heads& of, int r, const Row& asked) {
  const int lane = threadIdx.x % 32;
  float q_q = 0.f, k_k = 0.f, q_k = 0.f;
#pragma unroll
  for (int j = 0; j < LANE_KEYS; j++) {
    const float a = asked.q[j], b = asked.k[j];
    q_q = __fmaf_rn(a, a, q_q), k_k = __fmaf_rn(b, b, k_k), q_k = __fmaf_rn(a, b, q_k);
  }
  const float q_scale = 1.f / sqrtf(lr_warp_sum(q_q) + 1e-6f) / sqrtf((float)KEYS);
  const float k_scale = 1.f / sqrtf(lr_warp_sum(k_k) + 1e-6f);
  q_k = lr_warp_sum(q_k);
#pragma unroll
  for (int j = 0; j < LANE_KEYS; j++) {
    const int i = lane + 32 * j;
    if (i < PADDED) tile.q[r][i] = asked.q[j] * q_scale, tile.k[r][i] = asked.k[j] * k_scale;
  }
  tile.v[r][lane] = asked.v;
  if (lane) return;
  tile.decay[r] = lr_exp(__ldg(of.decay + of.head) * lr_softplus(asked.alpha + __ldg(of.dt_bias + of.head)));
  tile.share[r] = lr_sigmoid(asked.beta);
  tile.qk[r] = q_k * q_scale * k_scale;
}

// S = decay · S + k ⊗ delta of delta = share · (v - decay · Sᵀk) -> Sᵀq, which is decay · Sᵀq of the S before + (q·k) · delta.
LR_INLINE float lr_delta_row(HeadState& state, const Tile& tile, int r) {
  float recalled = 0.f, read = 0.f;
#pragma unroll
  for (int i = 0; i < PIECES; i++) {
    const float4 k = state.piece(tile.k[r], i), q = state.piece(tile.q[r], i);
    const float ks[4] = {k.x, k.y, k.z, k.w}, qs[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      recalled = __fmaf_rn(state.s[i][j], ks[j], recalled);
      read = __fmaf_rn(state.s[i][j], qs[j], read);
    }
  }
  const float decay = tile.decay[r];
  const float delta = tile.share[r] * (tile.v[r][lr_column()] - decay * lr_parts_sum(recalled));
  read = __fmaf_rn(tile.qk[r], delta, decay * lr_parts_sum(read));
#pragma unroll
  for (int i = 0; i < PIECES; i++) {
    const float4 k = state.piece(tile.k[r], i);
    const float ks[4] = {k.x, k.y, k.z, k.w};
#pragma unroll
    for (int j = 0; j < 4; j++) state.s[i][j] = __fmaf_rn(ks[j], delta, decay * state.s[i][j]);
  }
  return read;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) delta_rule(const float* qkv, const float* alpha, const float* beta,
    const float* decay, const float* dt_bias, float* numbers, const int* before, const int* after, const int* first_row,
    const int* n_rows, float* out, int n_sequences, int n_key_heads, int n_value_heads, int columns, int tiled,
    int block_numbers, int state_at) {
  __shared__ Tile tile;
  const int head = blockIdx.y, first_column = blockIdx.x * COLUMNS, column = first_column + lr_column();
  const int key_head = tiled ? head % n_key_heads : head * n_key_heads / n_value_heads, n_keys = n_key_heads * KEYS;
  const int width = 2 * n_keys + n_value_heads * columns, value_at = 2 * n_keys + head * columns + first_column;
  const Heads heads = {qkv,  alpha,           beta,     decay,                 dt_bias, n_value_heads, n_keys, width,
                       head, key_head * KEYS, value_at, columns - first_column};
  const Walk walk = {{numbers, block_numbers, state_at + (int64_t)head * KEYS * columns + column},
                     before, after, first_row, n_rows, out + head * columns + column, n_sequences, n_value_heads * columns};
  HeadState state(columns, column < columns);
  lr_walk_texts<Row>(
      walk, state, [&](int64_t row) { return lr_ask_row(heads, row); },
      [&](int r, const Row& asked) { lr_put_row(tile, heads, r, asked); },
      [&](HeadState& s, int r) { return lr_delta_row(s, tile, r); });
}

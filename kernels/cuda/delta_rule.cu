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

// Sums of squares first, so that each warp has rows of its own.
LR_INLINE void lr_read_row(Tile& tile, const Heads& of, int64_t row, int r) {
  const int lane = threadIdx.x % 32;
  const float *q = of.qkv + row * of.width + of.key_at, *k = q + of.n_keys;
  float q_q = 0.f, k_k = 0.f, q_k = 0.f;
  for (int i = lane; i < KEYS; i += 32) {
    const float a = __ldcg(q + i), b = __ldcg(k + i);
    q_q = __fmaf_rn(a, a, q_q), k_k = __fmaf_rn(b, b, k_k), q_k = __fmaf_rn(a, b, q_k);
  }
  const float q_scale = 1.f / sqrtf(lr_warp_sum(q_q) + 1e-6f) / sqrtf((float)KEYS);
  const float k_scale = 1.f / sqrtf(lr_warp_sum(k_k) + 1e-6f);
  q_k = lr_warp_sum(q_k);
  for (int i = lane; i < PADDED; i += 32) {
    tile.q[r][i] = i < KEYS ? __ldcg(q + i) * q_scale : 0.f;
    tile.k[r][i] = i < KEYS ? __ldcg(k + i) * k_scale : 0.f;
  }
  tile.v[r][lane] = lane < of.n_columns ? __ldcg(of.qkv + row * of.width + of.value_at + lane) : 0.f;
  if (lane) return;
  const int64_t at = row * of.n_value_heads + of.head;
  const float step = lr_softplus(__ldcg(of.alpha + at) + __ldg(of.dt_bias + of.head));
  tile.decay[r] = lr_exp(__ldg(of.decay + of.head) * step);
  tile.share[r] = lr_sigmoid(__ldcg(of.beta + at));
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
  const States states = {numbers, block_numbers, state_at + (int64_t)head * KEYS * columns + column};
  for (int s = blockIdx.z; s < n_sequences; s += gridDim.z) {
    const int n = __ldcg(n_rows + s), first = __ldcg(first_row + s);
    if (!n) continue;
    HeadState state(columns, column < columns);
    state.load(states.before(__ldcg(before + s)));
    for (int row = 0; row < n; row++) {
      const int r = row % ROWS;
      if (!r) {
        __syncthreads();
        for (int i = threadIdx.x / 32; i < min(ROWS, n - row); i += THREADS / 32) lr_read_row(tile, heads, first + row + i, i);
        __syncthreads();
      }
      const float read = lr_delta_row(state, tile, r);
      if (state.there && !state.part) out[((int64_t)(first + row) * n_value_heads + head) * columns + column] = read;
      const int wanted = __ldcg(after + first + row);
      if (wanted >= 0) state.store(states.place(wanted));
    }
  }
}

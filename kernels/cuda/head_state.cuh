// A head's state [KEYS][columns] on its way through the rows of a text, 32 columns of it in the registers of 128 threads. Four
// lanes share a column: the one of part p has keys 16 i + 4 p … + 3, so that they read four pieces of 16 bytes in a row.
#pragma once
#include "states.cuh"
#define PIECES ((KEYS + 15) / 16)
#define PADDED (16 * PIECES)  // keys; those beyond KEYS are zeros
#define COLUMNS 32            // of a block of threads
#define THREADS 128
#define ROWS 8                // whose keys are in shared memory together
#define WARPS (THREADS / 32)
#define LANE_KEYS ((KEYS + 31) / 32)  // of a row that a lane reads: lane, lane + 32, ...
#define BLOCKS (KEYS > 128 ? 2 : 3)  // of a multiprocessor at least: room for a state and what is read beside it

struct HeadState {
  float s[PIECES][4];
  int part, columns;
  bool there;  // whether the column is one

  __device__ HeadState(int n_columns, bool is_there) : part(threadIdx.x % 32 / 8), columns(n_columns), there(is_there) {}
  // from: the state at the column; null: zeros
  __device__ void load(const float* from) {
#pragma unroll
    for (int i = 0; i < PIECES; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) s[i][j] = from && has(i, j) ? __ldcg(from + (int64_t)key(i, j) * columns) : 0.f;
  }
  __device__ void store(float* to) const {
#pragma unroll
    for (int i = 0; i < PIECES; i++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (has(i, j)) to[(int64_t)key(i, j) * columns] = s[i][j];
  }
  __device__ int key(int i, int j) const { return 16 * i + 4 * part + j; }
  __device__ bool has(int i, int j) const { return there && (KEYS % 16 == 0 || key(i, j) < KEYS); }
  // Four numbers of a row [PADDED] of shared memory.
  __device__ float4 piece(const float* row, int i) const { return *(const float4*)(row + 16 * i + 4 * part); }
};

// The numbers of a lane of KEYS in a row.
LR_INLINE void lr_ask_keys(float (&keys)[LANE_KEYS], const float* row) {
#pragma unroll
  for (int j = 0; j < LANE_KEYS; j++) {
    const int i = threadIdx.x % 32 + 32 * j;
    keys[j] = i < KEYS ? __ldcg(row + i) : 0.f;
  }
}
LR_INLINE int lr_column() { return threadIdx.x / 32 * 8 + threadIdx.x % 8; }
// The sum over the four lanes of a column.
LR_INLINE float lr_parts_sum(float v) {
  v += __shfl_xor_sync(0xffffffffu, v, 8);
  return v + __shfl_xor_sync(0xffffffffu, v, 16);
}

// The texts of a step: where their states are, and where results go, of which a row has `width`.
struct Walk {
  States states;
  const int *before, *after, *first_row, *n_rows;
  float* out;  // of this column
  int n_sequences, width;
};

// Walk through the rows of every text, eight at a time: each warp reads two of them while all compute the eight before.
// `ask(row)` reads a row into the registers of a warp, as a Row; `put(r, asked)` makes it row r of the tile in shared memory;
// `compute(state, r)` changes the state by row r of the tile, and gives what is read of it.
template <class Row, class Ask, class Put, class Compute>
LR_INLINE void lr_walk_texts(const Walk& walk, HeadState& state, const Ask& ask, const Put& put, const Compute& compute) {
  const int warp = threadIdx.x / 32;
  for (int s = blockIdx.z; s < walk.n_sequences; s += gridDim.z) {
    const int n = __ldcg(walk.n_rows + s), first = __ldcg(walk.first_row + s);
    if (!n) continue;
    state.load(walk.states.before(__ldcg(walk.before + s)));
    Row asked[ROWS / WARPS];
    for (int at = -ROWS; at < n; at += ROWS) {
      if (at >= 0) {
        __syncthreads();  // nobody reads the rows before any more
#pragma unroll
        for (int i = 0; i < ROWS / WARPS; i++)
          if (at + i * WARPS + warp < n) put(i * WARPS + warp, asked[i]);
        __syncthreads();
      }
#pragma unroll
      for (int i = 0; i < ROWS / WARPS; i++) {
        const int row = at + ROWS + i * WARPS + warp;
        if (row < n) asked[i] = ask((int64_t)first + row);
      }
      for (int r = 0; at >= 0 && r < min(ROWS, n - at); r++) {
        const int row = first + at + r, wanted = __ldcg(walk.after + row);
        const float read = compute(state, r);
        if (state.there && !state.part) walk.out[(int64_t)row * walk.width] = read;
        if (wanted >= 0) state.store(walk.states.place(wanted));
      }
    }
  }
}

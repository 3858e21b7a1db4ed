// A mixture of experts but for its matrices: which experts rows go to, tiles of rows that go to one, and the sum of what comes
// back. Pair p is choice p % n_used of row p / n_used; rows at negative positions only pad, and go nowhere.
#include "numbers.cuh"
#define WARPS 8
#define FEW 8  // pairs of a tile of experts.cu
#ifndef KEYS
#define KEYS 128  // experts and groups
#endif

struct Routing {
  const float *choice_bias, *expert_scale;
  int n_experts, n_used;
  bool is_sigmoid, normalize;
  float scale;
  int n_groups, n_groups_used, group_rank;
};

// Take the greatest of n keys, which lanes have in turn -> its number, the same in every lane.
LR_INLINE int lr_take_best(uint64_t* keys, int n) {
  const int lane = threadIdx.x % 32;
  uint64_t best = 0;
  for (int i = lane; i < n; i += 32) best = max(best, keys[i]);
#pragma unroll
  for (int by = 16; by; by /= 2) {
    const uint32_t value = __shfl_xor_sync(0xffffffffu, (uint32_t)(best >> 32), by);
    best = max(best, (uint64_t)value << 32 | __shfl_xor_sync(0xffffffffu, (uint32_t)best, by));
  }
  const int id = (int)~(uint32_t)best;
  if (id % 32 == lane) keys[id] = 0;
  return id;
}

// Leave experts outside the best groups below all others. A group is as good as the sum of its `group_rank` best.
LR_INLINE void lr_keep_groups(const Routing& routing, uint64_t* keys, uint64_t* groups) {
  const int lane = threadIdx.x % 32, size = routing.n_experts / routing.n_groups;
  __syncwarp();
  for (int group = lane; group < routing.n_groups; group += 32) {
    uint64_t first = 0, second = 0;
    for (int i = group * size; i < (group + 1) * size; i++) {
      second = max(second, min(first, keys[i]));
      first = max(first, keys[i]);
    }
    groups[group] = lr_key(routing.group_rank == 2 ? lr_value(first) + lr_value(second) : lr_value(first), group);
  }
  for (int i = 0; i < routing.n_groups_used; i++) lr_take_best(groups, routing.n_groups);
  __syncwarp();
  for (int i = lane; i < routing.n_experts; i += 32)
    if (groups[i / size]) keys[i] = lr_key(-INFINITY, i);
}

// Choose experts for a row, best first, the lower of equals: a warp, with room for a key of every expert and group.
LR_INLINE void lr_choose(const Routing& routing, const float* logits, uint64_t* keys, int* ids, float* weights) {
  const int lane = threadIdx.x % 32;
  float top = -INFINITY, sum = 0.f;
  for (int i = lane; i < routing.n_experts; i += 32) top = fmaxf(top, __ldcg(logits + i));
#pragma unroll
  for (int by = 16; by; by /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, by));
  for (int i = lane; i < routing.n_experts; i += 32) sum += lr_exp(__ldcg(logits + i) - top);
  sum = lr_warp_sum(sum);
  const auto score_of = [&](int expert) {
    const float x = __ldcg(logits + expert);
    return routing.is_sigmoid ? lr_sigmoid(x) : lr_exp(x - top) / sum;
  };
  for (int i = lane; i < routing.n_experts; i += 32)
    keys[i] = lr_key(routing.choice_bias ? score_of(i) + __ldg(routing.choice_bias + i) : score_of(i), i);
  if (routing.n_groups > 1) lr_keep_groups(routing, keys, keys + routing.n_experts);

  float total = 0.f;
  for (int k = 0; k < routing.n_used; k++) {
    const int expert = lr_take_best(keys, routing.n_experts);
    const float score = score_of(expert);
    if (lane == 0) ids[k] = expert, weights[k] = score;
    total += score;
  }
  __syncwarp();
  for (int k = lane; k < routing.n_used; k += 32) {
    const float weight = (routing.normalize ? weights[k] / total : weights[k]) * routing.scale;
    weights[k] = routing.expert_scale ? weight * __ldg(routing.expert_scale + ids[k]) : weight;
  }
}

// ids, weights [pairs]; an id is -1 where the row only pads. Where one block has all rows it makes the tiles of experts.cu,
// too: a tile for every pair, of all the pairs that go where it goes, none where an earlier one does.
extern "C" __global__ void __launch_bounds__(32 * WARPS) route(const float* logits, const int* positions,
    const float* choice_bias, const float* expert_scale, int* ids, float* weights, int* tile_experts, int* tile_pairs,
    int n_rows, int n_experts, int n_used, int is_sigmoid, int normalize, float scale, int n_groups, int n_groups_used,
    int group_rank) {
  __shared__ uint64_t keys[WARPS * KEYS];
  const Routing routing = {choice_bias, expert_scale, n_experts, n_used, is_sigmoid != 0, normalize != 0, scale,
                           n_groups, n_groups_used, group_rank};
  const int warp = threadIdx.x / 32, row = blockIdx.x * WARPS + warp, n_pairs = n_rows * n_used;
  if (row < n_rows && __ldcg(positions + row) >= 0)
    lr_choose(routing, logits + (int64_t)row * n_experts, keys + warp * KEYS, ids + row * n_used,
              weights + row * n_used);
  else if (row < n_rows)
    for (int k = threadIdx.x % 32; k < n_used; k += 32) ids[row * n_used + k] = -1;
  if (gridDim.x > 1) return;
  __syncthreads();
  for (int p = threadIdx.x; p < n_pairs; p += 32 * WARPS) {
    const int expert = ids[p];
    bool is_first = expert >= 0;
    for (int i = 0; i < p; i++) is_first = is_first && ids[i] != expert;
    tile_experts[p] = is_first ? expert : -1;
    int n = 0;
    for (int i = p; i < n_pairs && is_first; i++)
      if (ids[i] == expert) tile_pairs[FEW * p + n++] = i;
    for (; n < FEW; n++) tile_pairs[FEW * p + n] = -1;
  }
}

// Tiles of `size` pairs for many rows; a warp has an expert, whose pairs stay in their order. Those of experts below make at
// most before / size + expert tiles: there its own begin, and the rest up to where the next expert's begin are none.
extern "C" __global__ void __launch_bounds__(32 * WARPS) arrange(const int* ids, int* tile_experts, int* tile_pairs,
    int n_pairs, int n_experts, int size, int n_tiles) {
  const int lane = threadIdx.x % 32, expert = blockIdx.x * WARPS + threadIdx.x / 32;
  if (expert >= n_experts) return;
  int before = 0, n_mine = 0;
  for (int base = 0; base < n_pairs; base += 32) {
    const int id = base + lane < n_pairs ? __ldcg(ids + base + lane) : -1;
    before += __popc(__ballot_sync(0xffffffffu, id >= 0 && id < expert));
    n_mine += __popc(__ballot_sync(0xffffffffu, id == expert));
  }
  const int first = before / size + expert, end = expert + 1 < n_experts ? (before + n_mine) / size + expert + 1 : n_tiles;
  int* const pairs = tile_pairs + (int64_t)first * size;
  for (int base = 0, n = 0; base < n_pairs; base += 32) {
    const bool mine = base + lane < n_pairs && __ldcg(ids + base + lane) == expert;
    const uint32_t which = __ballot_sync(0xffffffffu, mine);
    if (mine) pairs[n + __popc(which & ((1u << lane) - 1))] = base + lane;
    n += __popc(which);
  }
  for (int i = n_mine + lane; i < (end - first) * size; i += 32) pairs[i] = -1;
  for (int tile = first + lane; tile < end; tile += 32) tile_experts[tile] = (tile - first) * size < n_mine ? expert : -1;
}

// out = residual + out_scale · (what the experts of a row gave, weighted, best first, + shared · sigmoid(share)), without what
// is null. y: [pairs][n], share: [rows], others [rows][n].
extern "C" __global__ void __launch_bounds__(256) combine(const float* y, const int* ids, const float* weights,
    const float* shared, const float* share, const float* residual, float* out, float out_scale, int n_used, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
  if (i >= n) return;
  const int64_t at = (int64_t)row * n + i;
  float sum = 0.f;
  for (int p = row * n_used; p < (row + 1) * n_used; p++)
    if (ids[p] >= 0) sum = __fmaf_rn(__ldcg(y + (int64_t)p * n + i), weights[p], sum);
  if (shared) sum += share ? __ldcg(shared + at) * lr_sigmoid(__ldcg(share + row)) : __ldcg(shared + at);
  sum *= out_scale;
  out[at] = residual ? residual[at] + sum : sum;
}

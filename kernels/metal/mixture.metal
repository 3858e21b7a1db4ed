// A mixture of experts but for its matrices: which experts rows go to, tiles of rows that go to one, and the sum of what comes
// back. Pair p is choice p % n_used of row p / n_used; rows at negative positions only pad, and go nowhere.
#include "numbers.metal"
#define SIMDGROUPS 8
#define FEW 8  // pairs of a tile of experts.metal
#ifndef KEYS
#define KEYS 128  // experts and groups
#endif

struct Routing {
  int n_experts, n_used;
  bool is_sigmoid, normalize;
  float scale;
  int n_groups, n_groups_used, group_rank;
};

LR_INLINE float lr_score(float logit, Routing routing, float top, float sum) {
  return routing.is_sigmoid ? lr_sigmoid(logit) : lr_exp(logit - top) / sum;
}
// The upper half of lr_key; the lower half is where it stands.
LR_INLINE uint lr_rank(float x) { return uint(lr_key(x, 0) >> 32); }
LR_INLINE float lr_ranked(uint rank) { return lr_value(ulong(rank) << 32); }

// Take the greatest of n ranks, the first of equals -> its number, the same in every lane; lanes have every 32nd.
LR_INLINE int lr_take_best(threadgroup uint* ranks, int n, uint lane) {
  uint best = 0;
  int at = int(lane);
  for (int i = int(lane); i < n; i += 32)
    if (ranks[i] > best) best = ranks[i], at = i;
#pragma unroll
  for (ushort by = 16; by > 0; by /= 2) {
    const uint other = simd_shuffle_xor(best, by);
    const int place = simd_shuffle_xor(at, by);
    if (other > best || (other == best && place < at)) best = other, at = place;
  }
  if (at % 32 == int(lane)) ranks[at] = 0;
  return at;
}

// Leave experts outside the best groups below all others. A group is as good as the sum of its `group_rank` best.
LR_INLINE void lr_keep_groups(Routing routing, threadgroup uint* ranks, threadgroup uint* groups, uint lane) {
  const int size = routing.n_experts / routing.n_groups;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (int group = int(lane); group < routing.n_groups; group += 32) {
    uint first = 0, second = 0;
    for (int i = group * size; i < (group + 1) * size; i++) {
      second = max(second, min(first, ranks[i]));
      first = max(first, ranks[i]);
    }
    groups[group] = lr_rank(routing.group_rank == 2 ? lr_ranked(first) + lr_ranked(second) : lr_ranked(first));
  }
  for (int i = 0; i < routing.n_groups_used; i++) lr_take_best(groups, routing.n_groups, lane);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = int(lane); i < routing.n_experts; i += 32)
    if (groups[i / size] != 0) ranks[i] = lr_rank(-INFINITY);
}

// ids, weights [pairs]: the experts of each row, best first, the lower of equals; an id is -1 where the row only pads. Where
// one group has all rows it makes the tiles of experts.metal, too: a tile for every pair, of all the pairs that go where it
// goes, none where an earlier one does.
LR_THREADS(256)
kernel void route(device const float* logits [[buffer(0)]], device const int* positions [[buffer(1)]],
                  device const float* choice_bias [[buffer(2)]], device const float* expert_scale [[buffer(3)]],
                  device int* ids [[buffer(4)]], device float* weights [[buffer(5)]],
                  device int* tile_experts [[buffer(6)]], device int* tile_pairs [[buffer(7)]],
                  constant int& n_rows [[buffer(8)]], constant int& n_experts [[buffer(9)]],
                  constant int& n_used [[buffer(10)]], constant int& is_sigmoid [[buffer(11)]],
                  constant int& normalize [[buffer(12)]], constant float& scale [[buffer(13)]],
                  constant int& n_groups [[buffer(14)]], constant int& n_groups_used [[buffer(15)]],
                  constant int& group_rank [[buffer(16)]], constant uint& given [[buffer(17)]],
                  uint3 n_blocks [[threadgroups_per_grid]], uint3 group [[threadgroup_position_in_grid]],
                  uint at [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint all_ranks[SIMDGROUPS * KEYS];
  threadgroup uint* const ranks = all_ranks + int(simdgroup) * KEYS;
  const Routing routing = {n_experts, n_used, is_sigmoid != 0, normalize != 0, scale, n_groups, n_groups_used, group_rank};
  const int row = int(group.x) * SIMDGROUPS + int(simdgroup), n_pairs = n_rows * n_used;
  const bool there = row < n_rows && positions[min(row, n_rows - 1)] >= 0;
  const int first = row * n_used;
  if (there) {
    device const float* const mine = logits + long(row) * n_experts;
    float top = -INFINITY, sum = 0.f;
    for (int i = int(lane); i < n_experts; i += 32) top = fmax(top, mine[i]);
#pragma unroll
    for (ushort by = 16; by > 0; by /= 2) top = fmax(top, simd_shuffle_xor(top, by));
    for (int i = int(lane); i < n_experts; i += 32) sum += lr_exp(mine[i] - top);
    sum = lr_simd_sum(sum);
    for (int i = int(lane); i < n_experts; i += 32) {
      const float score = lr_score(mine[i], routing, top, sum);
      ranks[i] = lr_rank(LR_GIVEN(2) ? score + choice_bias[i] : score);
    }
    if (n_groups > 1) lr_keep_groups(routing, ranks, ranks + n_experts, lane);
    float total = 0.f;
    for (int k = 0; k < n_used; k++) {
      const int expert = lr_take_best(ranks, n_experts, lane);
      const float score = lr_score(mine[expert], routing, top, sum);
      if (lane == 0) ids[first + k] = expert, weights[first + k] = score;
      total += score;
    }
    simdgroup_barrier(mem_flags::mem_device);
    for (int k = first + int(lane); k < first + n_used; k += 32) {
      const float weight = (routing.normalize ? weights[k] / total : weights[k]) * scale;
      weights[k] = LR_GIVEN(3) ? weight * expert_scale[ids[k]] : weight;
    }
  } else if (row < n_rows) {
    for (int k = first + int(lane); k < first + n_used; k += 32) ids[k] = -1;
  }
  if (n_blocks.x > 1) return;
  threadgroup_barrier(mem_flags::mem_device);
  for (int p = int(at); p < n_pairs; p += 256) {
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

// Tiles of `size` pairs for many rows; a simdgroup has an expert, whose pairs stay in their order. Those of experts below make
// at most before / size + expert tiles: there its own begin, and the rest up to where the next expert's begin are none.
LR_THREADS(256)
kernel void arrange(device const int* ids [[buffer(0)]], device int* tile_experts [[buffer(1)]],
                    device int* tile_pairs [[buffer(2)]], constant int& n_pairs [[buffer(3)]],
                    constant int& n_experts [[buffer(4)]], constant int& size [[buffer(5)]],
                    constant int& n_tiles [[buffer(6)]], uint3 group [[threadgroup_position_in_grid]],
                    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const int expert = int(group.x) * SIMDGROUPS + int(simdgroup);
  if (expert >= n_experts) return;
  int before = 0, n_mine = 0;
  for (int base = 0; base < n_pairs; base += 32) {
    const int p = base + int(lane), id = p < n_pairs ? ids[p] : -1;
    before += int(lr_simd_sum(id >= 0 && id < expert ? 1.f : 0.f));
    n_mine += int(lr_simd_sum(id == expert ? 1.f : 0.f));
  }
  const int first = before / size + expert, end = expert + 1 < n_experts ? (before + n_mine) / size + expert + 1 : n_tiles;
  device int* const pairs = tile_pairs + long(first) * size;
  for (int base = 0, n = 0; base < n_pairs; base += 32) {
    const int p = base + int(lane);
    const bool mine = p < n_pairs && ids[min(p, n_pairs - 1)] == expert;
    int place = mine ? 1 : 0;  // how many of the lanes up to this one have a pair
#pragma unroll
    for (ushort by = 1; by < 32; by *= 2) {
      const int below = simd_shuffle_up(place, by);
      if (lane >= by) place += below;
    }
    if (mine) pairs[n + place - 1] = p;
    n += simd_shuffle(place, 31);
  }
  for (int i = n_mine + int(lane); i < (end - first) * size; i += 32) pairs[i] = -1;
  for (int tile = first + int(lane); tile < end; tile += 32) tile_experts[tile] = (tile - first) * size < n_mine ? expert : -1;
}

// out = residual + out_scale * (what the experts of a row gave, weighted, best first, + shared * sigmoid(share)), without what
// is null. y: [pairs][n], share: [rows], others [rows][n].
LR_THREADS(256)
kernel void combine(device const float* y [[buffer(0)]], device const int* ids [[buffer(1)]],
                    device const float* weights [[buffer(2)]], device const float* shared [[buffer(3)]],
                    device const float* share [[buffer(4)]], device const float* residual [[buffer(5)]],
                    device float* out [[buffer(6)]], constant float& out_scale [[buffer(7)]],
                    constant int& n_used [[buffer(8)]], constant int& n [[buffer(9)]], constant uint& given [[buffer(10)]],
                    uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]]) {
  const int i = int(group.x) * 256 + int(at), row = int(group.y);
  if (i >= n) return;
  const long place = long(row) * n + i;
  float sum = 0.f;
  for (int p = row * n_used; p < (row + 1) * n_used; p++)
    if (ids[p] >= 0) sum = fma(y[long(p) * n + i], weights[p], sum);
  if (LR_GIVEN(3)) sum += LR_GIVEN(4) ? shared[place] * lr_sigmoid(share[row]) : shared[place];
  out[place] = LR_GIVEN(5) ? fma(sum, out_scale, residual[place]) : sum * out_scale;
}

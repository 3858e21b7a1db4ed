// From raw logits to what a step gives: checked, adjusted by token id, and the best 256 picked out. A row is cut into parts
// of PART; the best of each are the next numbers to choose from, until one part is left. group.y is the row.
#include "numbers.metal"
#define BEST 256
#define THREADS 512
#define GROUP uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]]
#define LANES uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]

// How a request changes one row is written by AdjustTensors in logits.py: 16 bytes of begin, n_seen, n_counts and n_bias, and
// 16 of repeat, presence, frequency and temperature. After `begin` of the entries follow: ids that were seen, ids that count,
// how often each, ids with a bias, and each one's bias.
LR_INLINE float4 lr_penalties(device const int4* adjusts, uint row) { return as_type<float4>(adjusts[2 * row + 1]); }

// Greatest first (Batcher 1968); all threads of the group together.
LR_INLINE void lr_sort(threadgroup ulong* keys, uint at) {
  for (int run = 2; run <= PART; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int i = int(at); i < PART / 2; i += THREADS) {
        const int low = 2 * i - (i & (step - 1)), high = low + step;
        const ulong a = keys[low], b = keys[high];
        if ((a < b) == ((low & run) == 0)) keys[low] = b, keys[high] = a;
      }
    }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// finite [rows][parts]: whether a part is, before anything is adjusted. What is not stays what it is.
LR_THREADS(THREADS)
kernel void scale_logits(device float* rows [[buffer(0)]], device int* finite [[buffer(1)]], constant int& vocab [[buffer(2)]],
                         constant float& scale [[buffer(3)]], constant float& softcap [[buffer(4)]],
                         uint3 n_groups [[threadgroups_per_grid]], GROUP, LANES) {
  threadgroup float sums[THREADS / 32];
  const int first = int(group.x) * PART, end = min(first + PART, vocab);
  float broken = 0.f;
  for (int i = first + int(at); i < end; i += THREADS) {
    const long place = long(group.y) * vocab + i;
    const float scaled = rows[place] * scale;
    if (!lr_is_finite(scaled)) broken = 1.f;
    rows[place] = softcap != 0.f && lr_is_finite(scaled) ? lr_softcap(scaled, softcap) : scaled;
  }
  broken = lr_group_sum(broken, sums, simdgroup, lane, THREADS / 32);
  if (at == 0) finite[group.y * n_groups.x + group.x] = broken == 0.f ? 1 : 0;
}

// An id stands at most once in each list.
LR_THREADS(THREADS)
kernel void adjust_logits(device float* rows [[buffer(0)]], device const int4* adjusts [[buffer(1)]],
                          device const int* entries [[buffer(2)]], constant int& vocab [[buffer(3)]], GROUP) {
  const int4 sizes = adjusts[2 * group.y];
  const float4 by = lr_penalties(adjusts, group.y);
  const int n_seen = sizes.y, n_counts = sizes.z, n_bias = sizes.w;
  device float* const row = rows + long(group.y) * vocab;
  device const int* const seen = entries + sizes.x;
  device const int* const ids = seen + n_seen;
  device const int* const counts = ids + n_counts;
  device const int* const biased = counts + n_counts;
  for (int i = int(at); i < n_seen; i += THREADS) {
    const float x = row[seen[i]];
    row[seen[i]] = x > 0.f ? x / by.x : x * by.x;
  }
  threadgroup_barrier(mem_flags::mem_device);
  for (int i = int(at); i < n_counts; i += THREADS) row[ids[i]] -= fma(by.z, float(counts[i]), by.y);
  threadgroup_barrier(mem_flags::mem_device);
  for (int i = int(at); i < n_bias; i += THREADS) row[biased[i]] += as_type<float>(biased[n_bias + i]);
}

// best [rows][parts][BEST]: keys of each part, greatest first; sums [rows][parts]: the greatest number m of a part over the
// temperature, and the sum of e^(x / temperature - m).
LR_THREADS(THREADS)
kernel void best_of_logits(device const float* rows [[buffer(0)]], device const int4* adjusts [[buffer(1)]],
                           device ulong* best [[buffer(2)]], device float2* sums [[buffer(3)]], constant int& vocab [[buffer(4)]],
                           uint3 n_groups [[threadgroups_per_grid]], GROUP, LANES) {
  threadgroup ulong keys[PART];
  threadgroup float of_simdgroups[THREADS / 32];
  const int first = int(group.x) * PART, n = min(PART, vocab - first);
  for (int i = int(at); i < PART; i += THREADS)
    keys[i] = i < n ? lr_key(rows[long(group.y) * vocab + first + i], first + i) : 0;
  lr_sort(keys, at);
  const long place = long(group.y) * n_groups.x + group.x;
  for (int i = int(at); i < BEST; i += THREADS) best[place * BEST + i] = keys[i];

  const float temperature = lr_penalties(adjusts, group.y).w, m = lr_value(keys[0]) / temperature;
  const float from = m == INFINITY || m == -INFINITY ? 0.f : m;
  float sum = 0.f;
  for (int i = int(at); i < n; i += THREADS) sum += lr_exp(lr_value(keys[i]) / temperature - from);
  sum = lr_group_sum(sum, of_simdgroups, simdgroup, lane, THREADS / 32);
  if (at == 0) sums[place] = float2(m, sum);
}

// The best of every PART of n keys a row.
LR_THREADS(THREADS)
kernel void best_of_best(device const ulong* from [[buffer(0)]], device ulong* best [[buffer(1)]], constant int& n [[buffer(2)]],
                         uint3 n_groups [[threadgroups_per_grid]], GROUP) {
  threadgroup ulong keys[PART];
  const int first = int(group.x) * PART;
  for (int i = int(at); i < PART; i += THREADS) keys[i] = first + i < n ? from[long(group.y) * n + first + i] : 0;
  lr_sort(keys, at);
  device ulong* const to = best + (long(group.y) * n_groups.x + group.x) * BEST;
  for (int i = int(at); i < BEST; i += THREADS) to[i] = keys[i];
}

// What is found of a row: [2 * BEST + 2] ids, values, log of the sum of e^(x / temperature), whether all was finite.
LR_THREADS(BEST)
kernel void write_found(device const ulong* best [[buffer(0)]], device const float2* sums [[buffer(1)]],
                        device const int* finite [[buffer(2)]], device int* found [[buffer(3)]],
                        constant int& n_parts [[buffer(4)]], GROUP) {
  const ulong key = best[group.y * BEST + at];
  device int* const to = found + group.y * (2 * BEST + 3);  // the last is for tokens that are drawn here
  to[at] = int(~uint(key & 0xffffffffu));
  to[BEST + at] = as_type<int>(lr_value(key));
  if (at > 0) return;
  device const float2* const of_parts = sums + group.y * n_parts;
  float m = -INFINITY, sum = 0.f;
  int all_finite = 1;
  for (int i = 0; i < n_parts; i++) m = fmax(m, of_parts[i].x), all_finite &= finite[group.y * n_parts + i];
  const float base = m == INFINITY || m == -INFINITY ? 0.f : m;
  for (int i = 0; i < n_parts; i++) sum = fma(of_parts[i].y, lr_exp(of_parts[i].x - base), sum);
  to[2 * BEST] = as_type<int>(base + log(sum));
  to[2 * BEST + 1] = all_finite;
}

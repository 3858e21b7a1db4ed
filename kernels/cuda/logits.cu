// From raw logits to what a step gives: checked, adjusted by token id, and the best 256 picked out. A row is cut into parts
// of PART; the best of each are the next numbers to choose from, until one part is left.
#include "numbers.cuh"
#define BEST 256
#define THREADS 512

// How a request changes one row; AdjustTensors in logits.py writes it. After `begin` of the entries follow: ids that were
// seen, ids that count, how often each, ids with a bias, and each one's bias.
struct Adjust {
  int begin, n_seen, n_counts, n_bias;
  float repeat, presence, frequency, temperature;
};

// A number as an integer of the same order, NaN above all and 0 like -0; in front of what makes of equals the lower id the
// greater. 0 is less than every key.
LR_INLINE uint64_t lr_key(float x, int id) {
  const uint32_t bits = x != x ? 0x7fc00000u : x == 0.f ? 0u : __float_as_uint(x);
  return (uint64_t)(bits & 0x80000000u ? ~bits : bits | 0x80000000u) << 32 | ~(uint32_t)id;
}
LR_INLINE float lr_value(uint64_t key) {
  const uint32_t ordered = (uint32_t)(key >> 32);
  return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

// Greatest first; n is a power of two (Batcher 1968).
LR_INLINE void lr_sort(uint64_t* keys, int n) {
  for (int run = 2; run <= n; run *= 2)
    for (int step = run / 2; step; step /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < n / 2; i += THREADS) {
        const int low = 2 * i - (i & (step - 1)), high = low + step;
        const uint64_t a = keys[low], b = keys[high];
        if ((a < b) == ((low & run) == 0)) keys[low] = b, keys[high] = a;
      }
    }
  __syncthreads();
}

// finite [rows][parts]: whether a part is, before anything is adjusted. What is not stays what it is.
extern "C" __global__ void __launch_bounds__(THREADS) scale_logits(float* rows, int* finite, int vocab, float scale,
    float softcap) {
  __shared__ float sums[32];
  const int first = blockIdx.x * PART, end = min(first + PART, vocab);
  float broken = 0.f;
  for (int i = first + threadIdx.x; i < end; i += THREADS) {
    float& x = rows[(int64_t)blockIdx.y * vocab + i];
    const float scaled = x * scale;
    if (!lr_is_finite(scaled)) broken = 1.f;
    x = softcap != 0.f && lr_is_finite(scaled) ? lr_softcap(scaled, softcap) : scaled;
  }
  broken = lr_block_sum(broken, sums);
  if (threadIdx.x == 0) finite[blockIdx.y * gridDim.x + blockIdx.x] = broken == 0.f;
}

// A block of threads has a row; an id stands at most once in each list.
extern "C" __global__ void __launch_bounds__(THREADS) adjust_logits(float* rows, const Adjust* adjusts,
    const int* entries, int vocab) {
  const Adjust by = adjusts[blockIdx.y];
  float* row = rows + (int64_t)blockIdx.y * vocab;
  const int* seen = entries + by.begin;
  const int *ids = seen + by.n_seen, *counts = ids + by.n_counts, *biased = counts + by.n_counts;
  const float* bias = (const float*)(biased + by.n_bias);
  for (int i = threadIdx.x; i < by.n_seen; i += THREADS) {
    float& x = row[seen[i]];
    x = x > 0.f ? x / by.repeat : x * by.repeat;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < by.n_counts; i += THREADS) row[ids[i]] -= by.presence + by.frequency * (float)counts[i];
  __syncthreads();
  for (int i = threadIdx.x; i < by.n_bias; i += THREADS) row[biased[i]] += bias[i];
}

// best [rows][parts][BEST]: keys of each part, greatest first; sums [rows][parts]: the greatest number m of a part over the
// temperature, and the sum of e^(x / temperature - m).
extern "C" __global__ void __launch_bounds__(THREADS) best_of_logits(const float* rows, const Adjust* adjusts,
    uint64_t* best, float2* sums, int vocab) {
  __shared__ uint64_t keys[PART];
  __shared__ float of_warps[32];
  const int row = blockIdx.y, first = blockIdx.x * PART, n = min(PART, vocab - first);
  for (int i = threadIdx.x; i < PART; i += THREADS)
    keys[i] = i < n ? lr_key(rows[(int64_t)row * vocab + first + i], first + i) : 0;
  lr_sort(keys, PART);
  const int64_t at = (int64_t)row * gridDim.x + blockIdx.x;
  for (int i = threadIdx.x; i < BEST; i += THREADS) best[at * BEST + i] = keys[i];

  const float temperature = adjusts[row].temperature, m = lr_value(keys[0]) / temperature;
  const float from = m == INFINITY || m == -INFINITY ? 0.f : m;
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += THREADS) sum += lr_exp(lr_value(keys[i]) / temperature - from);
  sum = lr_block_sum(sum, of_warps);
  if (threadIdx.x == 0) sums[at] = make_float2(m, sum);
}

// The best of every PART of n keys a row.
extern "C" __global__ void __launch_bounds__(THREADS) best_of_best(const uint64_t* from, uint64_t* best, int n) {
  __shared__ uint64_t keys[PART];
  const int first = blockIdx.x * PART;
  for (int i = threadIdx.x; i < PART; i += THREADS)
    keys[i] = first + i < n ? from[(int64_t)blockIdx.y * n + first + i] : 0;
  lr_sort(keys, PART);
  uint64_t* to = best + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * BEST;
  for (int i = threadIdx.x; i < BEST; i += THREADS) to[i] = keys[i];
}

// What is found of a row: [2 · BEST + 2] ids, values, log of the sum of e^(x / temperature), whether all was finite.
extern "C" __global__ void __launch_bounds__(BEST) write_found(const uint64_t* best, const float2* sums,
    const int* finite, int* found, int n_parts) {
  const int row = blockIdx.y;
  const uint64_t key = best[row * BEST + threadIdx.x];
  int* to = found + row * (2 * BEST + 2);
  to[threadIdx.x] = (int)~(uint32_t)key;
  to[BEST + threadIdx.x] = (int)__float_as_uint(lr_value(key));
  if (threadIdx.x) return;
  sums += row * n_parts, finite += row * n_parts;
  float m = -INFINITY, sum = 0.f;
  int all = 1;
  for (int i = 0; i < n_parts; i++) m = fmaxf(m, sums[i].x), all &= finite[i];
  const float base = m == INFINITY || m == -INFINITY ? 0.f : m;
  for (int i = 0; i < n_parts; i++) sum += sums[i].y * lr_exp(sums[i].x - base);
  to[2 * BEST] = (int)__float_as_uint(base + logf(sum));
  to[2 * BEST + 1] = all;
}

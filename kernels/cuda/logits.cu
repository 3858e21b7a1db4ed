// From raw logits to what a step gives: checked, adjusted by token id, and the best 256 picked out. A row is cut into parts
// of PART; the best of each are the next numbers to choose from, until one part is left.
#include "numbers.cuh"
#define BEST 256
#define FOUND (2 * BEST + 3)
#define THREADS 512

// How a request changes one row; AdjustTensors in logits.py writes it. After `begin` of the entries follow: ids that were
// seen, ids that count, how often each, ids with a bias, and each one's bias.
struct Adjust {
  int begin, n_seen, n_counts, n_bias;
  float repeat, presence, frequency, temperature;
};

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

// What is found of a row: [FOUND] ids, values, log of the sum of e^(x / temperature), whether all was finite, and from
// draw_next the next token.
extern "C" __global__ void __launch_bounds__(BEST) write_found(const uint64_t* best, const float2* sums,
    const int* finite, int* found, int n_parts) {
  const int row = blockIdx.y;
  const uint64_t key = best[row * BEST + threadIdx.x];
  int* to = found + row * FOUND;
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

// How a row's next token is drawn; StepBuffer writes it. `u`: the two halves of a double.
struct Draw {
  int top_k;
  float temperature, top_p, min_p;
  int u_low, u_high;
};

LR_INLINE double lr_double(int low, int high) { return __hiloint2double(high, low); }

// The chain of ops/sampling.py on what was found of a row: the host goes by its own choice, which may differ where a draw
// falls on the border of two tokens. -1 where the candidates do not decide.
extern "C" __global__ void __launch_bounds__(BEST) draw_next(const Draw* draws, int* found, int vocab) {
  __shared__ double shares[BEST];
  int* of_row = found + blockIdx.x * FOUND;
  const Draw how = draws[blockIdx.x];
  const int i = threadIdx.x;
  const double logsumexp = __uint_as_float((uint32_t)of_row[2 * BEST]);
  const double value = __uint_as_float((uint32_t)of_row[BEST + i]);
  shares[i] = how.temperature > 0.f ? exp(fmin(value / how.temperature - logsumexp, 0.0)) : 0.0;
  __syncthreads();
  if (i) return;
  int n = min(BEST, vocab);
  bool complete = n == vocab, decided = true;
  if (how.top_k > 0 && how.top_k <= n) n = how.top_k, complete = true;
  else if (how.top_k > n) decided = complete;
  const double best = shares[0];
  double sum = 0.0, least = best;
  int n_likely = 0;  // of those before min_p cuts
  for (int k = 0; k < n; k++) {  // from here on: sums of the shares up to each
    least = fmin(least, shares[k]);
    n_likely += least >= how.min_p * best;
    shares[k] = sum += least;
  }
  if (how.top_p < 1.f) {
    const double wanted = how.top_p * (complete ? shares[n - 1] : 1.0);
    int k = 0;
    while (k < n && shares[k] < wanted) k++;
    if (k < n) n = k + 1, complete = true;
    else decided = decided && complete;
  }
  if (how.min_p > 0.f) {
    if (complete || n_likely < n) n = max(min(n, n_likely), 1), complete = true;
    else decided = false;
  }
  const double at = lr_double(how.u_low, how.u_high) * (complete ? shares[n - 1] : 1.0);
  int k = 0;
  while (k < n && shares[k] <= at) k++;
  if (k == n) decided = decided && complete, k = n - 1;
  of_row[2 * BEST + 2] = how.temperature <= 0.f ? of_row[0] : decided ? of_row[k] : -1;
}

// The tokens of a step are those that were drawn in the one before.
extern "C" __global__ void __launch_bounds__(32) take_drawn(const int* found, int* token_ids, int rows) {
  const int row = threadIdx.x;
  if (row < rows) token_ids[row] = max(found[row * FOUND + 2 * BEST + 2], 0);
}

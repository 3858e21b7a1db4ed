// Runs rope_append, or latent_append, and attention of a build of the library that Python cannot load: sanitized, for another machine, or
// with flags that it must not have. With a codec of float32 it fails where the scalar twin gives something else. Reads a case from stdin, writes the outputs of its runs to stdout.
//   int32: n_heads n_kv_heads head_dim value_dim codec window n_rows n_runs, then for each run: n_threads n_chunks chunk…
//   float: q [n_rows][n_heads·head_dim], k and v [n_rows][n_kv_heads·head_dim]; with a value_dim no v: k are latents
#include "attention/scalar_twin.h"
#include "localrun_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

static void check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

template <class T>
static std::vector<T> get(size_t n) {
  std::vector<T> values(n);
  check(fread(values.data(), sizeof(T), n, stdin) == n, "the case is cut short");
  return values;
}

// Whether `out` is what the scalar twin makes of the case, but for rounding.
static bool is_as_its_twin(const std::vector<int32_t>& head, const std::vector<float>& q, const std::vector<float>& k,
                           const std::vector<float>& v, const std::vector<float>& out) {
  const int32_t n_heads = head[0], n_kv_heads = head[1], head_dim = head[2], window = head[5], n_rows = head[6];
  const int32_t value_dim = head[3] ? head[3] : head_dim;
  double error = 0.0, size = 0.0;
  for (int32_t row = 0; row < n_rows; row++)
    for (int32_t h = 0; h < n_heads; h++) {
      const int32_t kv = h / (n_heads / n_kv_heads) * head_dim, first = window && row >= window ? row - window + 1 : 0;
      const size_t at = ((size_t)row * n_heads + h) * head_dim, to = ((size_t)row * n_heads + h) * value_dim;
      float wanted[LR_MAX_HEAD_DIM];
      const float* values = head[3] ? &k[kv] : &v[kv];
      attend_one_row(&q[at], &k[kv], values, n_kv_heads * head_dim, first, row + 1, head_dim, value_dim, 0.2f, wanted);
      for (int32_t d = 0; d < value_dim; d++) {
        error += (double)(out[to + d] - wanted[d]) * (out[to + d] - wanted[d]);
        size += (double)wanted[d] * wanted[d];
      }
    }
  return error < 1e-11 * size;
}

int main(int argc, char** argv) {
  check(argc == 2 && lr_use_isa(argv[1]) == LR_OK, "no such instruction set");
  const std::vector<int32_t> head = get<int32_t>(8);
  const int32_t n_heads = head[0], n_kv_heads = head[1], head_dim = head[2], rank = head[3], codec = head[4], n_rows = head[6];
  std::vector<std::vector<int32_t>> runs;
  for (int32_t i = 0; i < head[7]; i++) {
    const std::vector<int32_t> start = get<int32_t>(2);
    runs.push_back(get<int32_t>(start[1]));
    runs.back().insert(runs.back().begin(), start[0]);
  }
  const int32_t width = n_heads * head_dim, kv_width = n_kv_heads * head_dim;
  const std::vector<float> q = get<float>((size_t)n_rows * width), k = get<float>((size_t)n_rows * kv_width),
                           v = get<float>(rank ? 0 : (size_t)n_rows * kv_width);
  // Of latents what the instruction reads: parts of each head together, then the key's.
  const int32_t dims = rank ? head_dim - rank : 0, out_width = rank ? n_heads * rank : width;
  std::vector<float> parts[4];
  for (int32_t i = 0; rank && i < n_rows * (n_heads + 1); i++) {
    const bool of_query = i < n_rows * n_heads;
    const float* from = of_query ? &q[(size_t)i * head_dim] : &k[(size_t)(i - n_rows * n_heads) * head_dim];
    parts[of_query ? 0 : 2].insert(parts[of_query ? 0 : 2].end(), from, from + rank);
    parts[of_query ? 1 : 3].insert(parts[of_query ? 1 : 3].end(), from + rank, from + head_dim);
  }

  const int32_t n_blocks = (n_rows + LR_BLOCK_TOKENS - 1) / LR_BLOCK_TOKENS;
  const int64_t block_bytes =
      rank ? lr_latent_block_bytes(codec, head_dim, rank) : lr_kv_block_bytes(codec, n_kv_heads, head_dim);
  const int64_t ring_bytes = codec >= LR_KV_Q8 ? lr_kv_block_bytes(LR_KV_F16, n_kv_heads, head_dim) : 0;
  std::vector<int32_t> table(n_blocks), first(1, 0), tokens(n_rows, 0), sequence_of(n_rows, 0), positions(n_rows);
  for (int32_t i = 0; i < n_blocks; i++) table[i] = n_blocks - 1 - i;
  for (int32_t i = 0; i < n_rows; i++) positions[i] = i;

  for (const std::vector<int32_t>& run : runs) {
    std::vector<char> pool(n_blocks * block_bytes, (char)0xff), ring(n_blocks * ring_bytes, (char)0xff);
    std::vector<float> turned((size_t)n_rows * width), out((size_t)n_rows * out_width);
    lr_value values[6] = {};
    const int32_t of_heads[6] = {width, kv_width, kv_width, 0, width, width};
    const int32_t of_latents[6] = {n_heads * rank, n_heads * dims, rank, dims, width, out_width};
    for (int i = 0; i < 6; i++) values[i].width = values[i].stride = (rank ? of_latents : of_heads)[i];
    const float* rows[6] = {q.data(), k.data(), v.data(), nullptr, turned.data(), out.data()};
    for (int i = 0; rank && i < 4; i++) rows[i] = parts[i].data();
    lr_instruction instruction[2] = {};
    if (rank) {
      instruction[0].op = LR_OP_LATENT_APPEND;
      instruction[0].latent_append = {&values[0], &values[1], &values[2], &values[3], &values[4], 0, -1};
    } else {
      instruction[0].op = LR_OP_ROPE_APPEND;
      instruction[0].rope_append = {&values[0], &values[1], &values[2], &values[4], nullptr, nullptr, nullptr, 0, -1, 0, 0.0f};
    }
    instruction[1].op = LR_OP_ATTENTION;
    instruction[1].attention = {&values[4], nullptr, &values[5], nullptr, 0, head[5], 0, 0.2f, 0.0f, 0};
    const lr_cache_layer layer = {{pool.data(), block_bytes, 0}, {ring.data(), ring_bytes, 0}, 0, n_heads, n_kv_heads,
                                  head_dim, codec, 0, rank, 0};
    const lr_program program = {instruction, &layer, 2, 1};

    lr_threads* threads = lr_threads_create(run[0]);
    int32_t at = 0;
    for (size_t i = 1; i < run.size(); at += run[i++]) {
      const int32_t n = run[i];
      for (int j = 0; j < 6; j++) values[j].f32 = (float*)rows[j] + (size_t)at * values[j].width;
      const int32_t* tables[1] = {table.data()};
      lr_sequence sequence = {};
      sequence.table = sequence.ring = tables;
      sequence.first = first.data();
      sequence.length = at + n;
      lr_step step = {};
      step.token = tokens.data();
      step.position = positions.data() + at;
      step.row_sequence = sequence_of.data();
      step.sequence = &sequence;
      step.n_rows = n;
      step.n_sequences = 1;
      lr_executor* executor = nullptr;
      check(lr_program_create(&program, threads, n, &executor) == LR_OK, "the program is refused");
      check(lr_program_run(executor, &step) == LR_OK, "the step is refused");
      lr_program_destroy(executor);
    }
    lr_threads_destroy(threads);
    check(codec != LR_KV_F32 || is_as_its_twin(head, q, k, v, out), "not what the scalar twin computes");
    fwrite(out.data(), sizeof(float), out.size(), stdout);
  }
  return 0;
}

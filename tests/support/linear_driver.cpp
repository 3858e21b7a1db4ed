// Linears of the CPU library on another machine. stdin: {weights, rows, columns, tokens, counts}, the weights' gguf types,
// numbers of tokens, the rows of the weights as their files have them, the activations. stdout: the rows unpacked, then the
// products of all tokens, all float32. It fails where tokens together, so many at once, are not what each is alone; with two
// weights or more the first two are also gate and up. It also fails where the products of a quantized weight are not
// those of its scalar twin, which is asked about at most 1024 columns: it is slow.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "matmul/scalar_twin.h"

namespace {

template <class T> std::vector<T> read_numbers(size_t n) {
  std::vector<T> numbers(n);
  if (fread(numbers.data(), sizeof(T), n, stdin) != n) exit(2);
  return numbers;
}

int32_t padded(int32_t n) { return (n + 255) / 256 * 256; }

struct Linears {
  std::vector<lr_matrix> weight;
  int32_t n_rows, n_cols, n_tokens, stride, out_stride;
  std::vector<float> x, scale;
  std::vector<int8_t> codes;
  std::vector<int32_t> sums;
  lr_threads* threads;

  size_t n_outputs() const { return weight.size() + (weight.size() > 1); }
  size_t out_size() const { return (size_t)n_tokens * out_stride; }

  lr_value activations(size_t at) {
    const int32_t code_bytes = lr_layout_activation_format(LR_LAYOUT_Q8_0);
    return {&x[at], &codes[code_bytes * at], &scale[at / 32], &sums[at / 16], nullptr, n_cols, stride, 0, 0};
  }

  // Whether y [token][out_stride] of one weight is what its scalar twin gives; of tokens that have run.
  bool is_as_its_twin(const lr_matrix& w, const float* y, bool fused) {
    const lr_value a = activations(0);
    const ScalarTwin twin = scalar_twin(lr_arithmetic());
    if (!twin) return false;
    for (int32_t t = 0; t < n_tokens; t++)
      for (int32_t row = 0; row < n_rows; row++)
        if (y[(size_t)t * out_stride + row] != twin(&w, row, &a, t, fused)) return false;
    return true;
  }

  // Tokens first … first + n - 1 in one step; y: [output][tokens][out_stride].
  void run(int32_t first, int32_t n, float* y) {
    const size_t at = (size_t)first * stride;
    lr_value a = activations(at);
    std::vector<lr_value> out;
    for (size_t i = 0; i < n_outputs(); i++)
      out.push_back({y + i * out_size() + (size_t)first * out_stride, nullptr, nullptr, nullptr, nullptr, n_rows, out_stride, 0, 0});
    lr_instruction instruction[2] = {};
    for (int pair = 0; pair < 2; pair++) {
      instruction[pair].op = LR_OP_LINEAR;
      lr_linear& op = instruction[pair].linear;
      op.a = &a;
      op.n_weights = pair ? 2 : (int32_t)weight.size();
      op.act = pair ? LR_ACT_SILU_MUL : LR_ACT_NONE;
      op.out_scale = 1;
      for (int32_t i = 0; i < op.n_weights; i++) {
        op.weight[i] = &weight[i];
        op.out[i] = pair ? &out.back() : &out[i];
        op.make_formats |= lr_layout_activation_format(weight[i].layout);
      }
    }
    const lr_program program = {instruction, nullptr, weight.size() > 1 ? 2 : 1, 0};
    std::vector<int32_t> zeros(n), position(n);
    for (int32_t t = 0; t < n; t++) position[t] = t;
    lr_sequence sequence = {};
    sequence.length = n;
    lr_step step = {};
    step.token = step.row_sequence = zeros.data();
    step.position = position.data();
    step.sequence = &sequence;
    step.n_rows = n;
    step.n_sequences = 1;
    lr_executor* executor;
    if (lr_program_create(&program, threads, n, &executor) != LR_OK || lr_program_run(executor, &step) != LR_OK) exit(6);
    lr_program_destroy(executor);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || lr_use_isa(argv[1]) != LR_OK) return 3;
  const std::vector<int32_t> header = read_numbers<int32_t>(5);
  const int32_t n_rows = header[1], n_cols = header[2], n_tokens = header[3];
  const std::vector<int32_t> types = read_numbers<int32_t>(header[0]), counts = read_numbers<int32_t>(header[4]);
  Linears linears = {{}, n_rows, n_cols, n_tokens, padded(n_cols), padded(n_rows), {}, {}, {}, {}, lr_threads_create(2)};
  std::vector<float> row(n_cols);
  for (const int32_t type : types) {
    const std::vector<char> raw = read_numbers<char>((size_t)(n_rows * lr_row_bytes(type, n_cols)));
    lr_matrix matrix = {n_rows, n_cols, lr_layout_for(type), 0, nullptr, 0};
    matrix.n_bytes = lr_packed_bytes(matrix.layout, n_rows, n_cols);
    matrix.data = aligned_alloc(64, (size_t)matrix.n_bytes);
    if (lr_pack(&matrix, type, raw.data(), 0, n_rows) != LR_OK) return 4;
    for (int32_t r = 0; r < n_rows; r++) {
      if (lr_dequantize_row(&matrix, r, row.data()) != LR_OK) return 5;
      fwrite(row.data(), 4, row.size(), stdout);
    }
    linears.weight.push_back(matrix);
  }

  linears.x.resize((size_t)n_tokens * linears.stride);
  linears.codes.resize(2 * linears.x.size());
  linears.scale.resize(linears.x.size() / 32);
  linears.sums.resize(2 * linears.scale.size());
  for (int32_t t = 0; t < n_tokens; t++)
    memcpy(&linears.x[(size_t)t * linears.stride], read_numbers<float>(n_cols).data(), (size_t)n_cols * 4);

  const size_t out_size = linears.out_size();
  std::vector<float> alone(linears.n_outputs() * out_size), together(alone.size());
  for (int32_t t = 0; t < n_tokens; t++) linears.run(t, 1, alone.data());
  const bool fused = strcmp(argv[1], "generic");
  for (size_t i = 0; i < linears.weight.size(); i++) {
    const lr_matrix& w = linears.weight[i];
    if (n_cols > 1024 || !lr_has_codes(lr_layouts[w.layout])) continue;
    if (linears.is_as_its_twin(w, &alone[i * out_size], fused)) continue;
    fprintf(stderr, "layout %s: not what its scalar twin computes\n", lr_layouts[w.layout].name);
    return 9;
  }
  for (const int32_t n : counts) {
    linears.run(0, n, together.data());
    for (size_t i = 0; i < linears.n_outputs(); i++)
      for (int32_t t = 0; t < n; t++)
        if (memcmp(&alone[i * out_size + (size_t)t * linears.out_stride], &together[i * out_size + (size_t)t * linears.out_stride],
                   (size_t)n_rows * 4)) {
          fprintf(stderr, "output %d of %d tokens: token %d is not what it is alone\n", (int)i, n, t);
          return 8;
        }
  }
  for (size_t i = 0; i < linears.n_outputs(); i++)
    for (int32_t t = 0; t < n_tokens; t++) fwrite(&alone[i * out_size + (size_t)t * linears.out_stride], 4, (size_t)n_rows, stdout);
  return 0;
}

// One linear of the CPU library on another machine: stdin {gguf type, rows, columns, tokens}, the rows of the file and the
// activations; stdout the row bytes of every row unpacked, then the products, all float32.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "layouts.h"

static std::vector<char> read_bytes(size_t n) {
  std::vector<char> bytes(n);
  if (fread(bytes.data(), 1, n, stdin) != n) exit(2);
  return bytes;
}

int main(int argc, char** argv) {
  if (argc != 2 || lr_use_isa(argv[1]) != LR_OK) return 3;
  int32_t header[4];
  memcpy(header, read_bytes(sizeof header).data(), sizeof header);
  const int32_t type = header[0], n_rows = header[1], n_cols = header[2], n_tokens = header[3];
  const std::vector<char> raw = read_bytes((size_t)(n_rows * lr_row_bytes(type, n_cols)));
  const std::vector<char> given = read_bytes((size_t)n_tokens * n_cols * 4);

  lr_matrix matrix = {n_rows, n_cols, lr_layout_for(type), 0, nullptr, 0};
  matrix.n_bytes = lr_packed_bytes(matrix.layout, n_rows, n_cols);
  matrix.data = aligned_alloc(64, (size_t)matrix.n_bytes);
  if (lr_pack(&matrix, type, raw.data(), 0, n_rows) != LR_OK) return 4;
  std::vector<float> row(n_cols);
  for (int32_t r = 0; r < n_rows; r++) {
    if (lr_unpack_row(&matrix, r, row.data()) != LR_OK) return 5;
    fwrite(row.data(), 4, row.size(), stdout);
  }

  const int32_t stride = (n_cols + 255) / 256 * 256, out_stride = (n_rows + 255) / 256 * 256;
  std::vector<float> x((size_t)n_tokens * stride), y((size_t)n_tokens * out_stride), scale(x.size() / 32);
  std::vector<int8_t> codes(x.size());
  std::vector<int32_t> sums(scale.size());
  for (int32_t t = 0; t < n_tokens; t++) memcpy(&x[(size_t)t * stride], &given[(size_t)t * n_cols * 4], (size_t)n_cols * 4);
  lr_value a = {x.data(), codes.data(), scale.data(), sums.data(), nullptr, n_cols, stride, LR_FORM_Q8_32, 0};
  lr_value out = {y.data(), nullptr, nullptr, nullptr, nullptr, n_rows, out_stride, 0, 0};
  lr_instruction instruction = {};
  instruction.op = LR_OP_LINEAR;
  instruction.linear.a = &a;
  instruction.linear.weight[0] = &matrix;
  instruction.linear.out[0] = &out;
  instruction.linear.n_weights = 1;
  instruction.linear.out_scale = 1;
  instruction.linear.make_forms = lr_layout_form(matrix.layout);
  const lr_program program = {&instruction, nullptr, 1, 0};

  std::vector<int32_t> zeros(n_tokens), position(n_tokens);
  for (int32_t t = 0; t < n_tokens; t++) position[t] = t;
  lr_sequence sequence = {};
  sequence.length = n_tokens;
  lr_step step = {};
  step.token = step.row_sequence = zeros.data();
  step.position = position.data();
  step.sequence = &sequence;
  step.n_rows = n_tokens;
  step.n_sequences = 1;
  lr_executor* executor;
  if (lr_program_create(&program, lr_threads_create(2), n_tokens, &executor) != LR_OK) return 6;
  if (lr_program_run(executor, &step) != LR_OK) return 7;
  for (int32_t t = 0; t < n_tokens; t++) fwrite(&y[(size_t)t * out_stride], 4, (size_t)n_rows, stdout);
  return 0;
}

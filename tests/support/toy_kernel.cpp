// A toy kernel: the softmax of rows, one row a task. Compiled as one unit of kernels/cpu.
#include <math.h>
#include <stdlib.h>

#include "runtime/scratch.inc"
#include "runtime/thread_pool.h"
#include "simd/simd.h"

namespace {

struct Softmax {
  const float* x;  // [n_rows, width]
  float* y;
  int32_t n_rows, width;
  char* scratch;  // LR_SCRATCH_BYTES of every thread
  bool begun;
};

// Sixteen lanes walk along the row on every instruction set, so the order of the sum is the same on all of them.
void softmax_row(const Softmax& op, Scratch scratch, int64_t row) {
  const float* x = op.x + row * op.width;
  float* powers = scratch.floats(whole_lines(op.width));
  f32x16 largest = v_set<f32x16>(-INFINITY), sum = {};
  for (int32_t i = 0; i < op.width; i += 16) largest = v_max(v_load_n_or<f32x16>(x + i, op.width - i, -INFINITY), largest);
  largest = v_set<f32x16>(v_reduce_max(largest));
  for (int32_t i = 0; i < op.width; i += 16) {
    const f32x16 power = v_exp(v_load_n_or<f32x16>(x + i, op.width - i, -INFINITY) - largest);
    v_store(powers + i, power);
    sum = sum + power;
  }
  sum = v_set<f32x16>(v_reduce_sum(sum));
  for (int32_t i = 0; i < op.width; i += 16)
    v_store_n(op.y + row * op.width + i, v_load<f32x16>(powers + i) / sum, op.width - i);
}

int64_t next_phase(void* data) {
  Softmax* op = (Softmax*)data;
  if (op->begun) return -1;
  op->begun = true;
  return op->n_rows;
}

void run_task(void* data, int32_t thread, int64_t row) {
  const Softmax* op = (Softmax*)data;
  softmax_row(*op, Scratch((lr_scratch*)(op->scratch + (int64_t)thread * LR_SCRATCH_BYTES)), row);
}

}  // namespace

LR_API int toy_softmax(lr_threads* threads, int32_t n_rows, int32_t width, const float* x, float* y) {
  char* scratch = (char*)aligned_alloc(64, (size_t)threads_count(threads) * LR_SCRATCH_BYTES);
  Softmax op = {x, y, n_rows, width, scratch, false};
  const lr_job job = {next_phase, run_task, false};
  const int status = threads_run(threads, &job, &op);
  free(scratch);
  return status;
}

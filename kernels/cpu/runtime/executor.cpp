// Runs a program: a job whose phases are those of its instructions, one after the other.
#include "runtime/check.h"
#include "runtime/cpu_features.h"
#include "runtime/thread_pool.h"

#include <chrono>
#include <mutex>
#include <new>

typedef std::chrono::steady_clock Clock;

struct lr_executor {
  const lr_program* program;
  const lr_kernels* kernels;
  lr_threads* threads;
  int32_t max_rows;
  std::mutex turn;

  char* scratch = nullptr;    // of all threads, with guards
  lr_span* span = nullptr;    // [max_rows]
  double* seconds = nullptr;  // [n_instructions]
  char* shared = nullptr;
  int64_t shared_space = 0, shared_bytes = 0;  // reserved, and of them committed

  const lr_step* step = nullptr;
  int32_t current = 0, phase = 0;  // instruction and its phase; this and below change only between phases
  int64_t n_begun = 0;             // instructions, of all steps
  bool stopped = false, timing = false, weights_pass = false, encodes = false;
  Clock::time_point begun;

  lr_executor(const lr_program* p, const lr_kernels* k, lr_threads* t, int32_t rows)
      : program(p), kernels(k), threads(t), max_rows(rows) {}
};

namespace {

bool asked_to_stop(const lr_step* step) { return step->cancel && *step->cancel; }

void end_instruction(lr_executor* e) {
  if (e->timing) {
    const Clock::time_point now = Clock::now();
    e->seconds[e->current] += std::chrono::duration<double>(now - e->begun).count();
    e->begun = now;
  }
  e->current++;
  e->phase = 0;
}

// Each thread's scratch lies between two stretches of address space that nobody may touch.
enum { GUARD_BYTES = LR_SCRATCH_BYTES };

lr_scratch* scratch_of(const lr_executor* e, int64_t thread) {
  return (lr_scratch*)(e->scratch + GUARD_BYTES + thread * (LR_SCRATCH_BYTES + GUARD_BYTES));
}

int64_t scratch_bytes(const lr_executor* e) { return (char*)scratch_of(e, threads_count(e->threads)) - e->scratch; }

int commit_scratch(const lr_executor* e) {
  for (int32_t thread = 0; thread < threads_count(e->threads); thread++)
    if (lr_commit(scratch_of(e, thread), LR_SCRATCH_BYTES) != LR_OK) return LR_NO_MEMORY;
  return LR_OK;
}

lr_context context_of(const lr_executor* e, int32_t thread) {
  return {e->program, e->step, scratch_of(e, thread), e->shared, e->span};
}

int64_t next_phase(void* data) {
  lr_executor* e = (lr_executor*)data;
  for (e->phase++; e->current < e->program->n_instructions;) {
    const lr_instruction* instruction = &e->program->instruction[e->current];
    const lr_op_kernels* op = e->kernels->op[instruction->op];
    if (e->phase == op->n_phases) {
      end_instruction(e);
      continue;
    }
    if (e->phase == 0) {
      e->stopped = asked_to_stop(e->step);
      if (e->stopped) return -1;
      e->n_begun++;
    }
    const lr_context context = context_of(e, 0);
    return op->n_tasks(instruction, &context, e->phase);
  }
  return -1;
}

void run_task(void* data, int32_t thread, int64_t task) {
  lr_executor* e = (lr_executor*)data;
  const lr_instruction* instruction = &e->program->instruction[e->current];
  const lr_context context = context_of(e, thread);
  if (context.scratch->instruction != e->n_begun) *context.scratch = {nullptr, e->n_begun, e->weights_pass, e->encodes};
  e->kernels->op[instruction->op]->run(instruction, &context, e->phase, (int32_t)task);
}

const lr_job STEP = {next_phase, run_task, false};

// Room for what this step's instructions share between phases. It grows by fp16_scales and is committed as it is needed.
int make_room(lr_executor* e, int64_t bytes) {
  if (bytes > e->shared_space) {
    const int64_t space = bytes + bytes / 2;
    char* room = (char*)lr_reserve(space);
    if (!room) return LR_NO_MEMORY;
    if (e->shared) lr_release(e->shared, e->shared_space);
    e->shared = room;
    e->shared_space = space;
    e->shared_bytes = 0;
  }
  if (bytes <= e->shared_bytes) return LR_OK;
  if (lr_commit(e->shared, bytes) != LR_OK) return LR_NO_MEMORY;
  e->shared_bytes = bytes;
  return LR_OK;
}

int64_t bytes_of_step(const lr_executor* e) {
  const lr_context context = {e->program, e->step, nullptr, nullptr, e->span};
  int64_t most = 0;
  for (int32_t i = 0; i < e->program->n_instructions; i++) {
    const lr_instruction* instruction = &e->program->instruction[i];
    const lr_op_kernels* op = e->kernels->op[instruction->op];
    const int64_t bytes = op->step_bytes ? op->step_bytes(instruction, &context) : 0;
    most = bytes > most ? bytes : most;
  }
  return most;
}

// Of weights; no core has a share of the last cache that holds more.
const int64_t MOST_CACHED = (int64_t)256 << 20;

int64_t weight_bytes(const lr_program* program) {
  int64_t bytes = 0;
  const auto add = [&](const lr_matrix* weight) { bytes += weight ? weight->n_bytes : 0; };
  for (int32_t i = 0; i < program->n_instructions; i++) {
    const lr_instruction& one = program->instruction[i];
    if (one.op == LR_OP_LOGITS) add(one.logits.weight);
    for (int k = 0; one.op == LR_OP_LINEAR && k < one.linear.n_weights; k++) add(one.linear.weight[k]);
    if (one.op == LR_OP_HEAD_LINEAR) add(one.head_linear.weight);
    for (int k = 0; one.op == LR_OP_EXPERTS && k < 2; k++) add(one.experts.weight[k]);
  }
  return bytes;
}

// Whether it is a part of an encoder: it caches nothing and answers nothing.
bool encodes(const lr_program* program) {
  for (int32_t i = 0; i < program->n_instructions; i++)
    if (program->instruction[i].op == LR_OP_LOGITS) return false;
  return program->n_layers == 0;
}

}  // namespace

int lr_program_create(const lr_program* program, lr_threads* threads, int32_t max_rows, lr_executor** out) {
  if (!out || !threads || max_rows < 1) return LR_BAD_ARGUMENT;
  *out = nullptr;
  const lr_kernels* kernels = lr_current_kernels();
  if (const int wrong = check_program(program, kernels)) return wrong;
  lr_executor* e = new (std::nothrow) lr_executor(program, kernels, threads, max_rows);
  if (!e) return LR_NO_MEMORY;
  e->scratch = (char*)lr_reserve(scratch_bytes(e));
  e->span = new (std::nothrow) lr_span[max_rows];
  e->seconds = new (std::nothrow) double[program->n_instructions]();
  if (!e->scratch || !e->span || !e->seconds || commit_scratch(e) != LR_OK) {
    lr_program_destroy(e);
    return LR_NO_MEMORY;
  }
  e->encodes = encodes(program);
  e->weights_pass = cpu_streams_past_caches() && weight_bytes(program) > MOST_CACHED;
  *out = e;
  return LR_OK;
}

void lr_program_destroy(lr_executor* e) {
  if (!e) return;
  if (e->scratch) lr_release(e->scratch, scratch_bytes(e));
  if (e->shared) lr_release(e->shared, e->shared_space);
  delete[] e->span;
  delete[] e->seconds;
  delete e;
}

int lr_program_run(lr_executor* e, const lr_step* step) {
  if (!e) return LR_BAD_ARGUMENT;
  const std::lock_guard<std::mutex> lock(e->turn);
  if (const int wrong = check_step(e->program, step, e->max_rows, e->span)) return wrong;
  e->step = step;
  if (const int wrong = make_room(e, bytes_of_step(e))) return wrong;
  e->current = 0;
  e->phase = -1;
  e->stopped = false;
  e->begun = Clock::now();
  const int status = threads_run(e->threads, &STEP, e);
  return status != LR_OK ? status : e->stopped ? LR_CANCELLED : LR_OK;
}

int64_t lr_attention_bytes(int32_t n_heads, int32_t value_dim, int32_t n_sequences, int32_t length) {
  const int64_t n_splits = length / (LR_SPLIT_BLOCKS * LR_BLOCK_TOKENS) + 1, n_rows = n_sequences - 1 + LR_SPLIT_ROWS;
  const int64_t bytes = n_rows * n_heads * n_splits * lr_split_state_bytes(value_dim);
  return bytes < LR_SPLIT_STATES_BYTES ? bytes : LR_SPLIT_STATES_BYTES;
}

void lr_program_set_timing(lr_executor* e, int32_t on) {
  if (!e) return;
  const std::lock_guard<std::mutex> lock(e->turn);
  e->timing = on != 0;
  for (int32_t i = 0; i < e->program->n_instructions; i++) e->seconds[i] = 0.0;
}

int lr_program_timings(const lr_executor* e, double* seconds, int32_t n_instructions) {
  if (!e || !seconds || n_instructions != e->program->n_instructions) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < n_instructions; i++) seconds[i] = e->seconds[i];
  return LR_OK;
}

// Between the executor and the kernels of an instruction set: an op is one or more phases, a phase is a list of
// independent tasks, shared out among threads; a phase begins when the one before is done. What a task is may depend on
// the step's shape, never on the number of threads.
#pragma once
#include "program.h"

// The rows of one sequence of the step; none where n_rows is 0.
typedef struct {
  int32_t first_row, n_rows;
} lr_span;

// What a thread's memory for its tasks begins with; kernels get at the rest through Scratch (runtime/scratch.inc) only.
typedef struct {
  alignas(64) void* kept;  // what a task left there for the next one of its instruction, or null
  int64_t instruction;     // that the thread did a task of last, counted by the executor
  bool weights_pass;       // no cache keeps the weights until the next step, and prefetching past them all is best
  bool encodes;            // an image: all of its rows are a step, and none is ever alone
} lr_scratch;

typedef struct {
  const lr_program* program;
  const lr_step* step;
  lr_scratch* scratch;  // LR_SCRATCH_BYTES of the calling thread; keeps nothing when an instruction begins
  void* shared;         // lr_op_kernels::step_bytes, the same for all tasks of an instruction
  const lr_span* span;  // [n_sequences]
} lr_context;

#define LR_SCRATCH_BYTES (2 << 20)

// Split-KV: attention splits the keys of a sequence with at most so many rows among tasks. It keeps a softmax state of
// every split and query row until they are merged; a sequence whose states would go beyond these bytes is not split.
#define LR_SPLIT_ROWS 15
#define LR_SPLIT_STATES_BYTES (32 << 20)
static inline int64_t lr_split_state_bytes(int32_t value_dim) {
  return ((value_dim + 15) / 16 * 16 + 16) * (int64_t)sizeof(float);
}

typedef struct {
  int32_t n_phases;
  // Asked once a phase, when it begins and nothing else runs.
  int32_t (*n_tasks)(const lr_instruction* instruction, const lr_context* context, int32_t phase);
  void (*run)(const lr_instruction* instruction, const lr_context* context, int32_t phase, int32_t task);
  int64_t (*step_bytes)(const lr_instruction* instruction, const lr_context* context);  // or null: that its tasks share
} lr_op_kernels;

// One table of kernels an instruction set. Units define everything else as static: an inline function shared between
// units could leave the linker with the copy compiled for AVX-512 on a machine without it.
#pragma once
#include "localrun_cpu.h"
#include "ops/op.h"

// How a unit holds keys and values: one row a codec. A head is the K and V of one KV head of a block of 64 tokens.
typedef struct {
  int64_t (*head_bytes)(int32_t head_dim);
  void (*put)(void* head, int32_t head_dim, int32_t slot, const float* k, const float* v);
  void (*get)(const void* head, int32_t head_dim, int32_t slot, float* k, float* v);
  void (*put_codes)(void* head, int32_t head_dim, int32_t slot, const lr_kv_codes* k, const lr_kv_codes* v);  // or null
  void (*get_codes)(const void* head, int32_t head_dim, int32_t slot, lr_kv_codes* k, lr_kv_codes* v);
} lr_kv_layout;

// The same of latents, which are keys alone. value_dim: the dims of a key that are its value, too.
typedef struct {
  int64_t (*bytes)(int32_t key_dim);
  void (*put)(void* block, int32_t key_dim, int32_t value_dim, int32_t slot, const float* key);
  void (*get)(const void* block, int32_t key_dim, int32_t value_dim, int32_t slot, float* key);
} lr_latent_layout;

// What the machine is measured with (runtime/probe.inc).
typedef struct {
  void (*read)(const void* start, int64_t bytes);
  int64_t (*multiply_int8)(int64_t rounds);  // gives how many multiplications it did
  int64_t (*multiply_f16)(int64_t rounds);
} lr_probe_kernels;

// The next token of a row of logits (ops/choose.inc); `best` are its candidates.
typedef struct {
  int32_t (*of_candidates)(int32_t vocab, const lr_candidates* best, const lr_draw* draw);  // -1: they cannot decide
  int32_t (*of_row)(const float* row, int32_t vocab, const lr_candidates* best, const lr_draw* draw);
} lr_choose_kernels;

struct lr_kernels {
  const char* isa;
  const char* arithmetic;             // the name of one in matmul/arithmetic.h
  const lr_op_kernels* op[LR_N_OPS];  // by LR_OP_*; null: not in this unit
  const lr_kv_layout* kv[LR_N_KV];    // by LR_KV_*
  const lr_latent_layout* latents[LR_N_LATENTS];  // likewise
  int32_t code_format;                // of activations for quantized weights: LR_FORMAT_Q8 or Q16
  int32_t bf16_format;                // of activations for bf16 weights: LR_FORMAT_BF16, or 0 where f32 is read
  const lr_probe_kernels* probe;
  const lr_choose_kernels* choose;
};

// Which of them a build has is CMake's choice.
extern const lr_kernels lr_kernels_generic, lr_kernels_avx2, lr_kernels_avxvnni, lr_kernels_avx512, lr_kernels_amx,
    lr_kernels_neon, lr_kernels_i8mm;

// The table in use: the strongest of this machine unless lr_use_isa chose another.
const lr_kernels* lr_current_kernels(void);

// The C ABI of the library, with the structures of program.h. Its callers: library.py and bindings.py of localrun/backends/cpu.
#pragma once
#include "program.h"

#if defined(_WIN32)
#define LR_API extern "C" __declspec(dllexport)
#else
#define LR_API extern "C" __attribute__((visibility("default")))
#endif

#define LR_ABI_VERSION 26
// Goes up with every change of how anything is rounded or stored, but for the arithmetic of an instruction set: that has a name.
#define LR_NUMERICS_VERSION 5

// LR_BUSY: called inside a job of the pool, or in a child forked off the process that made it.
enum { LR_OK = 0, LR_BAD_ARGUMENT = 1, LR_UNSUPPORTED = 2, LR_CANCELLED = 3, LR_NO_MEMORY = 4, LR_BUSY = 5 };

LR_API int lr_version(void);
LR_API int lr_numerics_version(void);

// What both sides of the ABI know, for the caller to compare with its own: a structure with its size, a field
// ("lr_value.q8") with its offset and size, a constant with its value and no size. The last one has no name.
typedef struct {
  const char* name;
  int64_t value;
  int64_t bytes;
} lr_abi_entry;
LR_API const lr_abi_entry* lr_abi(void);

// The instruction sets this machine runs, weakest first, separated by spaces.
LR_API const char* lr_isas(void);
// The same with those that this build lacks.
LR_API const char* lr_machine_isas(void);
// The one in use; the strongest unless lr_use_isa chose another, which gives LR_UNSUPPORTED for one not in lr_isas().
LR_API const char* lr_isa(void);
// How it rounds the activations of quantized weights, by name (matmul/arithmetic.h).
LR_API const char* lr_arithmetic(void);
LR_API int lr_use_isa(const char* name);

// A pool of threads, shared by loading and by any number of programs. Null when it cannot be made.
typedef struct lr_threads lr_threads;
LR_API lr_threads* lr_threads_create(int32_t n_threads);
LR_API void lr_threads_destroy(lr_threads* threads);
// From now on thread `thread`, from 1 on, runs on these processors only; a wish, and none where the system knows no such.
LR_API int lr_threads_keep_to(lr_threads* threads, int32_t thread, const int32_t* processor, int32_t n_processors);
// task(data, 0) … task(data, n_tasks - 1), in any order, on all threads of the pool and the caller's.
LR_API int lr_parallel(lr_threads* threads, int64_t n_tasks, void (*task)(void* data, int64_t index), void* data);

// Address space, page aligned, from 2 MiB on in large pages where the system has them. Reserved bytes may not be touched
// before they are committed; committed ones read zero and take memory page by page when first written. lr_release takes
// what lr_reserve was given.
LR_API void* lr_reserve(int64_t bytes);
LR_API int lr_commit(void* start, int64_t bytes);
LR_API int lr_release(void* start, int64_t bytes);
// Bytes of a mapped file that are about to be read: the system may begin with it. Nothing waits.
LR_API void lr_will_read(const void* start, int64_t bytes);
// All bytes of a mapped file that starts there are read from the disk now, in large pages where the file system has them.
LR_API void lr_populate(const void* start, int64_t bytes);

// A program ready to run with the instruction set in use. It keeps the pointers: program and threads outlive it.
typedef struct lr_executor lr_executor;
LR_API int lr_program_create(const lr_program* program, lr_threads* threads, int32_t max_rows, lr_executor** out);
LR_API void lr_program_destroy(lr_executor* executor);
// One step; LR_CANCELLED when step->cancel was seen between two ops. Calls on one executor take turns.
LR_API int lr_program_run(lr_executor* executor, const lr_step* step);
// Bytes that attention keeps between its two phases, at most, in a step with this many sequences of `length` tokens, all
// but one of them with one row.
LR_API int64_t lr_attention_bytes(int32_t n_heads, int32_t value_dim, int32_t n_sequences, int32_t length);
// Seconds spent in each instruction since timing was last set; setting clears them.
LR_API void lr_program_set_timing(lr_executor* executor, int32_t on);
LR_API int lr_program_timings(const lr_executor* executor, double* seconds, int32_t n_instructions);

// How the next token of one row of logits is chosen.
typedef struct {
  int32_t row;
  int32_t top_k;           // 0: all
  double temperature;      // that of the row's logsumexp; 0: the best token
  double top_p, min_p, u;  // 0 to 1; the draw u less than 1
} lr_draw;
// The tokens [n_draws] of rows of logits, f32 [n_rows][vocab], with the candidates that the step left: those of one row
// whatever is asked of others. LR_BAD_ARGUMENT, too, for a row that was not finite.
LR_API int lr_choose(lr_threads* threads, const float* rows, int32_t n_rows, int32_t vocab, const lr_candidates* candidates,
                     const lr_draw* draws, int32_t n_draws, int32_t* tokens);

// Bytes of one layer of a block of 64 tokens with the instruction set in use; -1 for what it cannot hold.
LR_API int64_t lr_kv_block_bytes(int32_t codec, int32_t n_kv_heads, int32_t head_dim);
// Tokens [slot, slot + n) of one layer of a block, as plain numbers: k and v are f32 [n][n_kv_heads][head_dim].
LR_API int lr_kv_import(int32_t codec, int32_t n_kv_heads, int32_t head_dim, void* block, int32_t slot, int32_t n,
                        const float* k, const float* v);
LR_API int lr_kv_export(int32_t codec, int32_t n_kv_heads, int32_t head_dim, const void* block, int32_t slot, int32_t n,
                        float* k, float* v);
// The same as codes, for codecs that have them: k and v [n][n_kv_heads].
typedef struct {
  int8_t codes[LR_MAX_HEAD_DIM];                     // -127 to 127; 4 bits: -8 to 7
  uint16_t scale[LR_MAX_HEAD_DIM / LR_SCALE_DIMS];   // fp16, one for every 128 dims
  uint16_t offset[LR_MAX_HEAD_DIM / LR_SCALE_DIMS];  // 4 bits: an element is offset + scale · code
} lr_kv_codes;
LR_API int lr_kv_import_codes(int32_t codec, int32_t n_kv_heads, int32_t head_dim, void* block, int32_t slot, int32_t n,
                              const lr_kv_codes* k, const lr_kv_codes* v);
LR_API int lr_kv_export_codes(int32_t codec, int32_t n_kv_heads, int32_t head_dim, const void* block, int32_t slot,
                              int32_t n, lr_kv_codes* k, lr_kv_codes* v);
// The same of latents: keys [n][key_dim], of which the first value_dim numbers are values.
LR_API int64_t lr_latent_block_bytes(int32_t codec, int32_t key_dim, int32_t value_dim);
LR_API int lr_latent_import(int32_t codec, int32_t key_dim, int32_t value_dim, void* block, int32_t slot, int32_t n,
                            const float* keys);
LR_API int lr_latent_export(int32_t codec, int32_t key_dim, int32_t value_dim, const void* block, int32_t slot, int32_t n,
                            float* keys);
LR_API int lr_kv_copy_block(void* pool, int64_t block_bytes, int32_t from, int32_t to);

// Zeroes memory, each part on the thread that gets to it first.
LR_API int lr_first_touch(lr_threads* threads, void* start, int64_t bytes);
// Bytes a second of one pass over touched memory by all threads; -1 when it cannot be measured.
LR_API double lr_probe_read(lr_threads* threads, const void* start, int64_t bytes);
// Multiply-adds a second of all threads in registers at best: what linears on codes can reach, and what attention can
// reach on keys and values of 16 bits.
enum { LR_PROBE_INT8 = 0, LR_PROBE_F16 = 1 };
LR_API double lr_probe_multiply(lr_threads* threads, int32_t kind);

// The step program of the CPU backend: plain data that Python fills in once and the library executes step after step.
// values.h, instructions.h and this file are part of the C ABI. Mirrored in abi_step.py of localrun/backends/cpu. Sizes are
// in elements unless they say bytes. Pointers stay valid and unchanged for the life of a program; what changes from step
// to step is in lr_step.
#pragma once
#include "instructions.h"

// F16: stored as bf16 where a unit multiplies it, else IEEE half. From Q8 on keys and values are coded, and kept in 16 bits
// beside their codes for as long as rows read them so; latents are not.
enum { LR_KV_F32 = 0, LR_KV_F16 = 1, LR_KV_Q8 = 2, LR_KV_K8V4 = 3, LR_KV_Q4 = 4, LR_N_KV, LR_N_LATENTS = LR_KV_Q8 };

typedef struct {
  void* pool;           // block b of the layer's group begins at pool + b·block_bytes; this layer at + layer_offset
  int64_t block_bytes;  // of all layers of the group
  int64_t layer_offset;
} lr_kv_pool;

// Where one layer keeps keys and values, or its state. The bytes inside a block are private to the unit that wrote them.
typedef struct {
  lr_kv_pool blocks;
  lr_kv_pool ring;  // of the 16-bit blocks beside codes; all zero with a plain codec
  int32_t group;
  int32_t n_heads, n_kv_heads, head_dim;
  int32_t codec;
  int32_t state_size;  // floats of a recurrent layer, which has no heads and no codec; 0: keys and values
  int32_t value_dim;   // of latents, which are keys alone: values are their first dims; 0: keys and values of head_dim
  int32_t reserved;
} lr_cache_layer;

// Block b of a sequence holds its positions 64·b … 64·b + 63. A row at p reads the 16-bit copy of blocks p / 64 and 0,
// and the codes of all others; a float codec has nothing else. -1: a block that is not there, passed over by rows that see it.
// A recurrent layer writes the state at the end of block b to the table's block b unless that is -1, and the one after the
// last row to the last row's; its rows follow one another.
typedef struct {
  const int32_t* const* table;  // [group][block - first[group]]: codes, or floats
  const int32_t* first;         // [group]: number of the first block in the table
  const int32_t* sink;          // [group]: block 0 where the table begins later; or null
  const int32_t* const* ring;   // [group][block - ring_first]: 16-bit blocks; null where every codec is plain
  const int32_t* ring_sink;     // [group]: 16-bit block 0 where the ring begins later; or null
  const int32_t* write_from;    // [group]: rows below leave the table's blocks as they are; null: none does
  const int32_t* state;         // [group]: block with the state before this step, -1: zeros; null: no layer is recurrent
  int32_t ring_first;
  int32_t length;               // tokens after this step
} lr_sequence;

// Penalties and bias of one row of logits, by id, and the temperature of its logsumexp.
typedef struct {
  const int32_t* seen;    // ids the repeat penalty speaks of
  const int32_t* ids;     // ids of the answer, with how often they stand there
  const int32_t* counts;
  const int32_t* bias_ids;
  const float* bias;
  int32_t n_seen, n_ids, n_bias;
  float repeat, presence, frequency, inv_temperature;
} lr_adjust;

// What a step leaves about one row of logits, beside the row itself.
typedef struct {
  int32_t ids[LR_MAX_CANDIDATES];   // best first, equal values by lower id
  float values[LR_MAX_CANDIDATES];  // adjusted
  double logsumexp;                 // of the adjusted row · inv_temperature
  int32_t n_candidates;
  int32_t finite;                   // of the row before adjustment
} lr_candidates;

typedef struct {
  const int32_t* token;         // [n_rows]
  const int32_t* position;      // [n_rows]
  const int32_t* reach;         // [n_rows]: the last position that a row sees in layers with spans; null: its own
  const int32_t* row_sequence;  // [n_rows]; rows of a sequence are neighbours, in ascending position
  const lr_sequence* sequence;  // [n_sequences]
  const int32_t* logits_row;    // [n_logits]
  const lr_adjust* adjust;      // [n_logits] or null
  lr_candidates* candidates;    // [n_logits] or null: nobody samples
  const float* const* cos;      // [rope kind][n_rows·rope_half[kind]]
  const float* const* sin;
  const float* const* sink_cos;  // likewise for sink_out of rope_append, or null
  const float* const* sink_sin;
  const int32_t* rope_half;     // [rope kind]: rotated pairs
  const float* query_scale;     // [n_rows]: queries are multiplied by it after rope; or null
  const int32_t* buffer_row;    // [n_rows]: a row of the buffer of images, -1: none; or null: there are no images
  const float* buffer;          // [n_buffer][hidden]: in the place of embeddings
  const float* const* added;    // [n_added][n_buffer][hidden]
  const volatile int32_t* cancel;
  int32_t n_rows, n_sequences, n_logits, n_buffer, n_added, reserved;
} lr_step;

typedef struct {
  const lr_instruction* instruction;
  const lr_cache_layer* layer;
  int32_t n_instructions, n_layers;
} lr_program;

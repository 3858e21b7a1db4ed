// Limits, weight matrices and buffers of the step program (program.h). Mirrored in abi_values.py of localrun/backends/cpu.
#pragma once
#include <stdint.h>

#define LR_BLOCK_TOKENS 64   // tokens of a KV block
#define LR_STRIDE 256        // elements that rows of an arena buffer are rounded up to
#define LR_SPLIT_BLOCKS 8     // blocks of one online softmax before states are merged: splits of 512 positions
#define LR_MAX_HEAD_DIM 512
#define LR_MAX_KEY_DIM 576   // of a latent and what is turned beside it
#define LR_MAX_HEADS 4096
#define LR_MAX_WEIGHTS 4     // matrices of one linear
#define LR_MAX_CANDIDATES 256
#define LR_MAX_EXPERTS 512
#define LR_MAX_VOCAB (1 << 24)  // ids of a row of logits: candidates are looked for in a thread's scratch
#define LR_MAX_TAPS 16       // of a short convolution
#define LR_DELTA_PANEL 32    // columns of a state of the delta rule or a selective scan that lie together
#define LR_SCALE_DIMS 128    // dims of a head that share a scale in the codes of keys and values

// Formats of activations that a linear can read. F32 is always there; norm and the first linear that reads a value make the
// others. Those of codes are the bytes of one.
enum { LR_FORMAT_Q8 = 1, LR_FORMAT_Q16 = 2, LR_FORMAT_BF16 = 4 };

// A weight matrix in one of the library's layouts (layouts/layouts.h). Rows are padded to whole interleaves, columns with zeros.
typedef struct {
  int32_t n_rows, n_cols;
  int32_t layout;
  int32_t reserved;
  const void* data;  // 64-byte aligned
  int64_t n_bytes;
} lr_matrix;

// A buffer of the arena: f32 [max_rows][stride], and, where a linear reads it, its other formats.
typedef struct {
  float* f32;
  int8_t* q8;        // [max_rows][stride], of Q16 twice as many: codes, and what the arithmetic keeps besides
  float* q8_scale;   // [max_rows][stride / 32]: a word a group, read by the unit's arithmetic (matmul/arithmetic.h)
  int32_t* q8_sum;   // [max_rows][stride / 16]: sums of codes times factors, of outliers their low bytes
  uint16_t* bf16;    // [max_rows][stride]
  int32_t width;     // elements of a row that mean something
  int32_t stride;    // a multiple of 32, width rounded up to LR_STRIDE at least; what is beyond width is zero
  int32_t formats;     // LR_FORMAT_* that consumers of this buffer need
  int32_t reserved;
} lr_value;

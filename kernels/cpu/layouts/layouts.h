// How weight matrices lie in memory. A layout is a row of the table below: repack, dequantize and the kernels of
// every instruction set read the same rows.
//
// 16 rows of a matrix form a group; groups lie one after the other. A group is a list of blocks of 256 columns (the last
// may be shorter, in whole runs of 32), each padded to 64 bytes:
//   codes     per 32 columns vectors of 64 bytes: byte 4·r + i is row r, column 4·v + i of vector v. With 4 bits the low
//             nibbles of a vector are columns 8·v + i, the high nibbles columns 8·v + 4 + i. With 2 bits field f of a byte,
//             lowest first, is column 16·v + 4·f + i. Floats lie column by column, 16 rows; those of bf16 in pairs of columns,
//             and those of 4 bits in pairs that share a byte, the first in its low half.
//   high bits (4+1, 4+2) per 32 columns one or two vectors: field v of byte 4·r + i belongs to column 4·v + i
//   scales    per scale group 16 numbers, one a row; then likewise the minima, or the zero points. Those of 4 bits share a byte, the scale in
//             its low half. Those of 6 bits are three vectors of 64 bytes a block: byte 16·g + r has in its low 6 bits the scale of group g, its minimum, and the scale of
//             group 4 + g; in the high 2 bits, lowest first, the minimum of group 4 + g
//   super     16 numbers a block, one a row; then likewise those of the minima
// Rows beyond the last are zero. No byte is shared by two rows, so slabs of rows may be packed by different threads.
#pragma once
#include "localrun_cpu.h"
#include "program.h"

enum lr_code_bits {  // 4_1: nibbles, and a vector of fifth bits; 4_2: and vectors of two more
  LR_CODE_BITS_2, LR_CODE_BITS_4, LR_CODE_BITS_4_1, LR_CODE_BITS_4_2, LR_CODE_BITS_8, LR_CODE_BITS_NF4, LR_CODE_BITS_F8, LR_CODE_BITS_F16, LR_CODE_BITS_BF16, LR_CODE_BITS_F32
};
enum lr_scale {
  LR_SCALE_NONE,
  LR_SCALE_FP16,       // fp16 a group
  LR_SCALE_FP16_MIN,   // and one that is added
  LR_SCALE_FP16_ZERO,  // and a byte that is subtracted from the codes before: what they have as 0
  LR_SCALE_E8M0,       // a power of two a group: 2^(byte - 128), of floats twice that
  LR_SCALE_F32,        // float a group
  LR_SCALE_F32_MIN,    // and one that is added
  LR_SCALE_F32_ZERO,   // and a byte that is subtracted from the codes before
  LR_SCALE_SUPER_I8,   // int8 a group times float a block
  LR_SCALE_SUPER_MIN_4,  // 4 bits a group times an fp16 a block, and the same again for what is subtracted
  LR_SCALE_SUPER_MIN_6,  // 6 bits instead, eight groups a block
};
enum lr_table { LR_TABLE_NONE, LR_TABLE_IQ4, LR_TABLE_FP4 };

typedef struct {
  const char* name;
  int32_t code_bits;  // lr_code_bits
  int32_t scale;      // lr_scale
  int32_t group;      // columns of a scale: 16, 32, 64 or 128
  int32_t zero;       // the code that stands for 0; codes of LR_CODE_BITS_8 and tables are signed
  int32_t table;      // lr_table
} lr_layout;

enum {
  LR_LAYOUT_F32,
  LR_LAYOUT_F16,
  LR_LAYOUT_BF16,
  LR_LAYOUT_Q4_0,
  LR_LAYOUT_Q4_1,
  LR_LAYOUT_Q5_0,
  LR_LAYOUT_Q5_1,
  LR_LAYOUT_Q8_0,
  LR_LAYOUT_IQ4_NL,
  LR_LAYOUT_MXFP4,
  LR_LAYOUT_NVFP4,
  LR_LAYOUT_Q2_K,
  LR_LAYOUT_Q3_K,
  LR_LAYOUT_Q4_K,
  LR_LAYOUT_Q5_K,
  LR_LAYOUT_Q6_K,
  LR_LAYOUT_IQ4_XS,
  LR_LAYOUT_I8_K,  // whatever is a signed byte times a small integer a group times a float a block: IQ1-IQ3, TQ, Q8_K
  LR_LAYOUT_INT2_G64,  // unsigned codes times a scale plus a minimum: affine groups of checkpoints
  LR_LAYOUT_INT4_G64,
  LR_LAYOUT_INT5_G64,
  LR_LAYOUT_INT6_G32,
  LR_LAYOUT_INT6_G64,
  LR_LAYOUT_INT8_G32,
  LR_LAYOUT_INT8_G64,
  LR_LAYOUT_F8,  // FP8 (E4M3) without scales, with a float for 128 columns, and with a power of two for 32
  LR_LAYOUT_F8_G128,
  LR_LAYOUT_MXFP8,
  LR_LAYOUT_INT4_ZP_G32,  // unsigned codes less a zero point, times a scale
  LR_LAYOUT_INT4_ZP_G128,
  LR_LAYOUT_INT8_ZP_G32,
  LR_LAYOUT_NF4_G64,  // names of floats, with a float for 64 columns
  LR_LAYOUT_INT4_F32_G32,  // codes whose scales, and minima, fp16 does not hold: affine, symmetric, with zero points
  LR_LAYOUT_INT8_F32_G32,
  LR_LAYOUT_INT4_SYM_F32_G32,
  LR_LAYOUT_INT4_SYM_F32_G128,
  LR_LAYOUT_INT8_SYM_F32_G32,
  LR_LAYOUT_INT8_SYM_F32_G128,
  LR_LAYOUT_INT4_ZP_F32_G32,
  LR_LAYOUT_INT8_ZP_F32_G32,
  LR_N_LAYOUTS
};

static constexpr lr_layout lr_layouts[LR_N_LAYOUTS] = {
    {"f32", LR_CODE_BITS_F32, LR_SCALE_NONE, 32, 0, LR_TABLE_NONE},
    {"f16", LR_CODE_BITS_F16, LR_SCALE_NONE, 32, 0, LR_TABLE_NONE},
    {"bf16", LR_CODE_BITS_BF16, LR_SCALE_NONE, 32, 0, LR_TABLE_NONE},
    {"q4_0", LR_CODE_BITS_4, LR_SCALE_FP16, 32, 8, LR_TABLE_NONE},
    {"q4_1", LR_CODE_BITS_4, LR_SCALE_FP16_MIN, 32, 0, LR_TABLE_NONE},
    {"q5_0", LR_CODE_BITS_4_1, LR_SCALE_FP16, 32, 16, LR_TABLE_NONE},
    {"q5_1", LR_CODE_BITS_4_1, LR_SCALE_FP16_MIN, 32, 0, LR_TABLE_NONE},
    {"q8_0", LR_CODE_BITS_8, LR_SCALE_FP16, 32, 0, LR_TABLE_NONE},
    {"iq4_nl", LR_CODE_BITS_4, LR_SCALE_FP16, 32, 0, LR_TABLE_IQ4},
    {"mxfp4", LR_CODE_BITS_4, LR_SCALE_E8M0, 32, 0, LR_TABLE_FP4},
    {"nvfp4", LR_CODE_BITS_4, LR_SCALE_FP16, 16, 0, LR_TABLE_FP4},
    {"q2_k", LR_CODE_BITS_2, LR_SCALE_SUPER_MIN_4, 16, 0, LR_TABLE_NONE},
    {"q3_k", LR_CODE_BITS_4, LR_SCALE_SUPER_I8, 16, 4, LR_TABLE_NONE},
    {"q4_k", LR_CODE_BITS_4, LR_SCALE_SUPER_MIN_6, 32, 0, LR_TABLE_NONE},
    {"q5_k", LR_CODE_BITS_4_1, LR_SCALE_SUPER_MIN_6, 32, 0, LR_TABLE_NONE},
    {"q6_k", LR_CODE_BITS_4_2, LR_SCALE_SUPER_I8, 16, 32, LR_TABLE_NONE},
    {"iq4_xs", LR_CODE_BITS_4, LR_SCALE_SUPER_I8, 32, 0, LR_TABLE_IQ4},
    {"i8_k", LR_CODE_BITS_8, LR_SCALE_SUPER_I8, 16, 0, LR_TABLE_NONE},
    {"int2_g64", LR_CODE_BITS_2, LR_SCALE_FP16_MIN, 64, 0, LR_TABLE_NONE},
    {"int4_g64", LR_CODE_BITS_4, LR_SCALE_FP16_MIN, 64, 0, LR_TABLE_NONE},
    {"int5_g64", LR_CODE_BITS_4_1, LR_SCALE_FP16_MIN, 64, 0, LR_TABLE_NONE},
    {"int6_g32", LR_CODE_BITS_4_2, LR_SCALE_FP16_MIN, 32, 0, LR_TABLE_NONE},
    {"int6_g64", LR_CODE_BITS_4_2, LR_SCALE_FP16_MIN, 64, 0, LR_TABLE_NONE},
    {"int8_g32", LR_CODE_BITS_8, LR_SCALE_FP16_MIN, 32, -128, LR_TABLE_NONE},
    {"int8_g64", LR_CODE_BITS_8, LR_SCALE_FP16_MIN, 64, -128, LR_TABLE_NONE},
    {"f8", LR_CODE_BITS_F8, LR_SCALE_NONE, 32, 0, LR_TABLE_NONE},
    {"f8_g128", LR_CODE_BITS_F8, LR_SCALE_F32, 128, 0, LR_TABLE_NONE},
    {"mxfp8", LR_CODE_BITS_F8, LR_SCALE_E8M0, 32, 0, LR_TABLE_NONE},
    {"int4_zp_g32", LR_CODE_BITS_4, LR_SCALE_FP16_ZERO, 32, 0, LR_TABLE_NONE},
    {"int4_zp_g128", LR_CODE_BITS_4, LR_SCALE_FP16_ZERO, 128, 0, LR_TABLE_NONE},
    {"int8_zp_g32", LR_CODE_BITS_8, LR_SCALE_FP16_ZERO, 32, -128, LR_TABLE_NONE},
    {"nf4_g64", LR_CODE_BITS_NF4, LR_SCALE_F32, 64, 0, LR_TABLE_NONE},
    {"int4_f32_g32", LR_CODE_BITS_4, LR_SCALE_F32_MIN, 32, 0, LR_TABLE_NONE},
    {"int8_f32_g32", LR_CODE_BITS_8, LR_SCALE_F32_MIN, 32, -128, LR_TABLE_NONE},
    {"int4_sym_f32_g32", LR_CODE_BITS_4, LR_SCALE_F32, 32, 8, LR_TABLE_NONE},
    {"int4_sym_f32_g128", LR_CODE_BITS_4, LR_SCALE_F32, 128, 8, LR_TABLE_NONE},
    {"int8_sym_f32_g32", LR_CODE_BITS_8, LR_SCALE_F32, 32, 0, LR_TABLE_NONE},
    {"int8_sym_f32_g128", LR_CODE_BITS_8, LR_SCALE_F32, 128, 0, LR_TABLE_NONE},
    {"int4_zp_f32_g32", LR_CODE_BITS_4, LR_SCALE_F32_ZERO, 32, 0, LR_TABLE_NONE},
    {"int8_zp_f32_g32", LR_CODE_BITS_8, LR_SCALE_F32_ZERO, 32, -128, LR_TABLE_NONE},
};

// Something of every layout: LR_EACH_LAYOUT(f) is f<0>(), f<1>() …
#define LR_EACH_LAYOUT(f)                                                                                              \
  f<0>(), f<1>(), f<2>(), f<3>(), f<4>(), f<5>(), f<6>(), f<7>(), f<8>(), f<9>(), f<10>(), f<11>(), f<12>(), f<13>(), \
      f<14>(), f<15>(), f<16>(), f<17>(), f<18>(), f<19>(), f<20>(), f<21>(), f<22>(), f<23>(), f<24>(), f<25>(), \
      f<26>(), f<27>(), f<28>(), f<29>(), f<30>(), f<31>(), f<32>(), f<33>(), f<34>(), f<35>(), f<36>(), f<37>(), \
      f<38>(), f<39>()
static_assert(LR_N_LAYOUTS == 40, "LR_EACH_LAYOUT lacks a layout");

static constexpr int8_t lr_tables[3][16] = {
    {0},
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
    {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12},
};

// NF4 (Dettmers et al. 2023, arXiv 2305.14314).
alignas(64) static constexpr float lr_nf4[16] = {
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f,
    -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
    0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};

// Scale groups of a run of 32 columns, and the columns of it that each has: a wider group counts once for every run.
static constexpr int32_t lr_run_groups(const lr_layout& layout) { return layout.group < 32 ? 32 / layout.group : 1; }
static constexpr int32_t lr_run_columns(const lr_layout& layout) { return 32 / lr_run_groups(layout); }
// The place of group `h` of a run among the scale groups of its block.
static constexpr int32_t lr_scale_place(const lr_layout& layout, int32_t run, int32_t h) {
  return layout.group > 32 ? run / (layout.group / 32) : run * lr_run_groups(layout) + h;
}

// Bytes of each part of a block of 16 rows, per run of 32 columns; the super_scales once a block.
typedef struct {
  int32_t codes, high, scales, minima, super_scales;
} lr_block_parts;

static constexpr lr_block_parts lr_parts(const lr_layout& layout) {
  lr_block_parts parts = {256, 0, 0, 0, 0};
  switch (layout.code_bits) {
    case LR_CODE_BITS_2: parts.codes = 128; break;
    case LR_CODE_BITS_4: case LR_CODE_BITS_NF4: break;
    case LR_CODE_BITS_4_1: parts.high = 64; break;
    case LR_CODE_BITS_4_2: parts.high = 128; break;
    case LR_CODE_BITS_8: case LR_CODE_BITS_F8: parts.codes = 512; break;
    case LR_CODE_BITS_F16: case LR_CODE_BITS_BF16: parts.codes = 1024; break;
    default: parts.codes = 2048;
  }
  switch (layout.scale) {
    case LR_SCALE_FP16: parts.scales = 32 * 32 / layout.group; break;
    case LR_SCALE_FP16_MIN: parts.scales = parts.minima = 32 * 32 / layout.group; break;
    case LR_SCALE_FP16_ZERO: parts.scales = 32 * 32 / layout.group; parts.minima = 16 * 32 / layout.group; break;
    case LR_SCALE_E8M0: parts.scales = 16 * 32 / layout.group; break;
    case LR_SCALE_F32: parts.scales = 64 * 32 / layout.group; break;
    case LR_SCALE_F32_MIN: parts.scales = parts.minima = 64 * 32 / layout.group; break;
    case LR_SCALE_F32_ZERO: parts.scales = 64 * 32 / layout.group; parts.minima = 16 * 32 / layout.group; break;
    case LR_SCALE_SUPER_I8: parts.scales = 16 * 32 / layout.group; parts.super_scales = 64; break;
    case LR_SCALE_SUPER_MIN_4: parts.scales = 16 * 32 / layout.group; parts.super_scales = 64; break;
    case LR_SCALE_SUPER_MIN_6: parts.scales = 24; parts.super_scales = 64; break;
    default: break;
  }
  return parts;
}

// Whether weights are codes, which are multiplied with those of activations; else they are floats.
static constexpr bool lr_has_codes(const lr_layout& layout) { return layout.code_bits <= LR_CODE_BITS_8; }
static constexpr bool lr_is_f8(const lr_layout& layout) { return layout.code_bits == LR_CODE_BITS_F8; }
// Whether they are floats of 4 or 8 bits, which are widened before they are multiplied.
static constexpr bool lr_is_widened(const lr_layout& layout) {
  return lr_is_f8(layout) || layout.code_bits == LR_CODE_BITS_NF4;
}

static constexpr bool lr_has_zeros(const lr_layout& layout) {
  return layout.scale == LR_SCALE_FP16_ZERO || layout.scale == LR_SCALE_F32_ZERO;
}

// Bytes of the 16 scales of a group, where each has its own, and of its minima or zero points.
static constexpr int32_t lr_scale_bytes(const lr_layout& layout) {
  switch (layout.scale) {
    case LR_SCALE_F32: case LR_SCALE_F32_MIN: case LR_SCALE_F32_ZERO: return 64;
    case LR_SCALE_FP16: case LR_SCALE_FP16_MIN: case LR_SCALE_FP16_ZERO: return 32;
    default: return 16;
  }
}
static constexpr int32_t lr_minimum_bytes(const lr_layout& layout) {
  return lr_has_zeros(layout) ? 16 : lr_scale_bytes(layout);
}
static constexpr bool lr_has_minima(const lr_layout& layout) {
  return layout.scale == LR_SCALE_FP16_MIN || layout.scale == LR_SCALE_F32_MIN || layout.scale == LR_SCALE_SUPER_MIN_4 ||
         layout.scale == LR_SCALE_SUPER_MIN_6 || lr_has_zeros(layout);
}

// Bytes of a block of n runs of 32 columns, and of a whole group of 16 rows.
static constexpr int64_t lr_block_bytes(const lr_block_parts& p, int32_t n) {
  return ((int64_t)n * (p.codes + p.high + p.scales + p.minima) + p.super_scales + 63) / 64 * 64;
}
static constexpr int64_t lr_group_bytes(const lr_block_parts& p, int32_t n_cols) {
  const int32_t runs = (n_cols + 31) / 32;
  return runs / 8 * lr_block_bytes(p, 8) + (runs % 8 ? lr_block_bytes(p, runs % 8) : 0);
}

// The layout of a quant type by its GGUF id; -1: unknown.
LR_API int32_t lr_layout_for(int32_t gguf_type);
LR_API const char* lr_layout_name(int32_t layout);
// The format of activations (LR_FORMAT_*) that a linear with this layout reads on the instruction set in use; 0: f32.
LR_API int32_t lr_layout_activation_format(int32_t layout);
// Bytes of a packed matrix, -1 where the layout cannot hold such a matrix.
LR_API int64_t lr_packed_bytes(int32_t layout, int32_t n_rows, int32_t n_cols);
// Bytes of a row as the file has it, -1 where a row cannot have that many columns.
LR_API int64_t lr_row_bytes(int32_t gguf_type, int32_t n_cols);
// The vectors that codes of a grid type name (int8 [n]); types IQ1-IQ3 can be packed once theirs are known.
LR_API int lr_set_grid(int32_t gguf_type, const int8_t* values, int64_t n);
// Packs rows first_row … first_row + n_rows - 1 of the file into the matrix; other rows may be packed at the same time.
LR_API int lr_pack(const lr_matrix* matrix, int32_t gguf_type, const void* raw, int32_t first_row, int32_t n_rows);
// One row as float32 [n_cols], to the bit what the file says.
LR_API int lr_dequantize_row(const lr_matrix* matrix, int32_t row, float* out);
// A row of the file's own blocks as float32 [n_cols], the same numbers.
LR_API int lr_dequantize_blocks(int32_t gguf_type, const void* raw, int32_t n_cols, float* out);

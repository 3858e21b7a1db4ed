// Single numbers of a packed matrix: the codes, scales and minima of one row, by column. The definition of what the vectors
// of matmul/unpack_codes.inc hold.
#pragma once
#include <string.h>

#include "layouts/layouts.h"
#include "simd/fp16.h"

static inline float e8m0(uint8_t e) {  // 2^(e - 128)
  return bits_float(e > 1 ? (uint32_t)(e - 1) << 23 : 0x00200000u << e);
}

// Where a run of 32 columns of one row lies: the first byte of each part, lanes not yet added. Scales, minima and
// super_scales are those of its block.
typedef struct {
  const uint8_t *codes, *high, *scales, *minima, *super_scales;
  int32_t in_block;
} Run;

static inline Run find_run(const lr_matrix* m, const lr_block_parts& parts, int32_t row, int32_t run) {
  const int32_t runs = (m->n_cols + 31) / 32, block = run / 8, i = run % 8;
  const int32_t n = runs - block * 8 < 8 ? runs - block * 8 : 8;
  const uint8_t* base =
      (const uint8_t*)m->data + row / 16 * lr_group_bytes(parts, m->n_cols) + block * lr_block_bytes(parts, 8);
  Run r;
  r.codes = base + i * parts.codes;
  base += n * parts.codes;
  r.high = base + i * parts.high;
  base += n * parts.high;
  r.scales = base;
  r.minima = base + n * parts.scales;
  r.super_scales = r.minima + n * parts.minima;
  r.in_block = i;
  return r;
}

static inline int code_at(const lr_layout& layout, const Run& run, int lane, int column) {
  const int v = column / 4, byte = 4 * lane + column % 4;
  if (layout.code_bits == LR_CODE_BITS_8) return (int8_t)run.codes[64 * v + byte];
  if (layout.code_bits == LR_CODE_BITS_2) return run.codes[64 * (v / 4) + byte] >> (v % 4 * 2) & 3;
  const int nibble = run.codes[64 * (v / 2) + byte] >> (v % 2 * 4) & 15;
  if (layout.table != LR_TABLE_NONE) return lr_tables[layout.table][nibble];
  if (layout.code_bits == LR_CODE_BITS_4_1) return nibble | (run.high[byte] >> v & 1) << 4;
  if (layout.code_bits == LR_CODE_BITS_4_2) return nibble | (run.high[64 * (v / 4) + byte] >> (v % 4 * 2) & 3) << 4;
  return nibble;
}

static inline float e4m3_to_float(uint8_t code) {
  const uint16_t half = (uint16_t)((code & 0x80) << 8 | (code & 0x7f) << 7);  // of a 2^8th of the number
  return (code & 0x7f) == 0x7f ? bits_float(0x7fc00000) : fp16_to_float(&half) * 256.0f;
}

static inline float unpack_float(const lr_layout& layout, const Run& run, int lane, int column) {
  if (layout.code_bits == LR_CODE_BITS_NF4) return lr_nf4[run.codes[16 * (column / 2) + lane] >> column % 2 * 4 & 15];
  if (lr_is_f8(layout)) return e4m3_to_float(run.codes[16 * column + lane]);
  const uint8_t* at = layout.code_bits == LR_CODE_BITS_F32   ? run.codes + 64 * column + 4 * lane
                      : layout.code_bits == LR_CODE_BITS_F16 ? run.codes + 32 * column + 2 * lane
                                                             : run.codes + 64 * (column / 2) + 4 * lane + column % 2 * 2;
  if (layout.code_bits == LR_CODE_BITS_F16) return fp16_to_float(at);
  uint32_t bits = 0;
  if (layout.code_bits == LR_CODE_BITS_F32) memcpy(&bits, at, 4);
  else bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
  return bits_float(bits);
}

// Scales of 6 bits of one lane, as layouts.h says: `at` is its first byte.
static inline int six_bit_scale(const uint8_t* at, int group) {
  return at[group < 4 ? 16 * group : 128 + 16 * (group - 4)] & 63;
}
static inline int six_bit_minimum(const uint8_t* at, int group) {
  if (group < 4) return at[64 + 16 * group] & 63;
  at += 16 * (group - 4);
  return at[0] >> 6 | at[64] >> 6 << 2 | at[128] >> 6 << 4;
}

// The code that stands for 0 in one scale group of a run.
static inline int zero_at(const lr_layout& layout, const Run& run, int lane, int group) {
  const int place = lr_scale_place(layout, run.in_block, group);
  return layout.zero + (lr_has_zeros(layout) ? run.minima[place * lr_minimum_bytes(layout) + lane] : 0);
}

// Scale and minimum of one scale group of a run: what its zero point takes off is a minimum, too.
static inline void scales_at(const lr_layout& layout, const Run& run, int lane, int group, float* scale, float* minimum) {
  const int in_block = lr_scale_place(layout, run.in_block, group);
  const uint8_t* s = run.scales + in_block * lr_scale_bytes(layout);
  const uint8_t* m = run.minima + in_block * lr_minimum_bytes(layout);
  *minimum = 0;
  switch (layout.scale) {
    case LR_SCALE_FP16_MIN: *minimum = fp16_to_float(m + 2 * lane); [[fallthrough]];
    case LR_SCALE_FP16: *scale = fp16_to_float(s + 2 * lane); return;
    case LR_SCALE_FP16_ZERO:
      *scale = fp16_to_float(s + 2 * lane);
      *minimum = (float)-m[lane] * *scale;  // exact
      return;
    case LR_SCALE_E8M0:
      *scale = lr_has_codes(layout) ? e8m0(s[lane]) : s[lane] == 0xff ? bits_float(0x7fc00000) : 2 * e8m0(s[lane]);
      return;
    case LR_SCALE_F32_MIN: memcpy(minimum, m + 4 * lane, 4); [[fallthrough]];
    case LR_SCALE_F32: memcpy(scale, s + 4 * lane, 4); return;
    case LR_SCALE_F32_ZERO:
      memcpy(scale, s + 4 * lane, 4);
      *minimum = (float)-m[lane] * *scale;
      return;
    case LR_SCALE_SUPER_I8: {
      float super;
      memcpy(&super, run.super_scales + 4 * lane, 4);
      *scale = super * (float)(int8_t)s[lane];
      return;
    }
    default: {
      const bool six = layout.scale == LR_SCALE_SUPER_MIN_6;
      const int of_scale = six ? six_bit_scale(run.scales + lane, in_block) : s[lane] & 15;
      const int of_minimum = six ? six_bit_minimum(run.scales + lane, in_block) : s[lane] >> 4;
      *scale = fp16_to_float(run.super_scales + 2 * lane) * (float)of_scale;
      *minimum = -(fp16_to_float(run.super_scales + 32 + 2 * lane) * (float)of_minimum);
    }
  }
}

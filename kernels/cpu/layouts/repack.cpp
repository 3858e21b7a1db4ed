// Repacking weights from the blocks of a file to a layout. An unpacker takes one block of a quant type apart; one writer
// knows the layouts.
// Bits mean what localrun/formats/decode_*.py says, which the tests hold both to.
#include "layouts/layouts.h"
#include "layouts/unpack_blocks.h"

#include <string.h>

namespace {

// What a type's blocks are, and the layout that holds it. Without a reader the rows are plain numbers.
struct Source {
  int32_t gguf_type, layout, block_columns, block_bytes;
  BlockUnpacker unpack;
};

const Source kSources[] = {
    {0, LR_LAYOUT_F32, 1, 4, nullptr},
    {1, LR_LAYOUT_F16, 1, 2, nullptr},
    {30, LR_LAYOUT_BF16, 1, 2, nullptr},
    {28, LR_LAYOUT_F32, 1, 8, nullptr},
    {24, LR_LAYOUT_F32, 1, 1, nullptr},
    {25, LR_LAYOUT_F32, 1, 2, nullptr},
    {26, LR_LAYOUT_F32, 1, 4, nullptr},
    {27, LR_LAYOUT_F32, 1, 8, nullptr},
    {2, LR_LAYOUT_Q4_0, 32, 18, unpack_q4_0},
    {3, LR_LAYOUT_Q4_1, 32, 20, unpack_q4_1},
    {6, LR_LAYOUT_Q5_0, 32, 22, unpack_q5_0},
    {7, LR_LAYOUT_Q5_1, 32, 24, unpack_q5_1},
    {8, LR_LAYOUT_Q8_0, 32, 34, unpack_q8_0},
    {20, LR_LAYOUT_IQ4_NL, 32, 18, unpack_q4_0},
    {39, LR_LAYOUT_MXFP4, 32, 17, unpack_mxfp4},
    {40, LR_LAYOUT_NVFP4, 64, 36, unpack_nvfp4},
    {10, LR_LAYOUT_Q2_K, 256, 84, unpack_q2_k},
    {11, LR_LAYOUT_Q3_K, 256, 110, unpack_q3_k},
    {12, LR_LAYOUT_Q4_K, 256, 144, unpack_q4_k},
    {13, LR_LAYOUT_Q5_K, 256, 176, unpack_q5_k},
    {14, LR_LAYOUT_Q6_K, 256, 210, unpack_q6_k},
    {23, LR_LAYOUT_IQ4_XS, 256, 136, unpack_iq4_xs},
    {15, LR_LAYOUT_I8_K, 256, 292, unpack_q8_k},
    {34, LR_LAYOUT_I8_K, 256, 54, unpack_tq1_0},
    {35, LR_LAYOUT_I8_K, 256, 66, unpack_tq2_0},
    {16, LR_LAYOUT_I8_K, 256, 66, unpack_iq2_xxs},
    {17, LR_LAYOUT_I8_K, 256, 74, unpack_iq2_xs},
    {22, LR_LAYOUT_I8_K, 256, 82, unpack_iq2_s},
    {18, LR_LAYOUT_I8_K, 256, 98, unpack_iq3_xxs},
    {21, LR_LAYOUT_I8_K, 256, 110, unpack_iq3_s},
    {19, LR_LAYOUT_I8_K, 256, 50, unpack_iq1_s},
    {29, LR_LAYOUT_I8_K, 256, 56, unpack_iq1_m},
    // Types of checkpoints alone, whose numbers are ours: localrun/formats/quant.py has the same.
    {1001, LR_LAYOUT_INT2_G64, 64, 20, unpack_int2_g64},
    {1002, LR_LAYOUT_INT4_G64, 64, 36, unpack_int4_g64},
    {1003, LR_LAYOUT_INT5_G64, 64, 44, unpack_int5_g64},
    {1004, LR_LAYOUT_INT6_G32, 32, 28, unpack_int6_g32},
    {1005, LR_LAYOUT_INT6_G64, 64, 52, unpack_int6_g64},
    {1006, LR_LAYOUT_INT8_G32, 32, 36, unpack_int8_g32},
    {1007, LR_LAYOUT_INT8_G64, 64, 68, unpack_int8_g64},
    {1008, LR_LAYOUT_F8, 1, 1, nullptr},
    {1009, LR_LAYOUT_F8_G128, 128, 132, unpack_f8_g128},
    {1010, LR_LAYOUT_MXFP8, 32, 33, unpack_mxfp8},
    {1011, LR_LAYOUT_INT4_ZP_G32, 32, 19, unpack_int4_zp_g32},
    {1012, LR_LAYOUT_INT4_ZP_G128, 128, 67, unpack_int4_zp_g128},
    {1013, LR_LAYOUT_INT8_ZP_G32, 32, 35, unpack_int8_zp_g32},
    {1014, LR_LAYOUT_NF4_G64, 64, 36, unpack_nf4_g64},
    {1015, LR_LAYOUT_INT4_F32_G32, 32, 24, unpack_int4_f32_g32},
    {1016, LR_LAYOUT_INT8_F32_G32, 32, 40, unpack_int8_f32_g32},
    {1017, LR_LAYOUT_INT4_SYM_F32_G32, 32, 20, unpack_int4_sym_f32_g32},
    {1018, LR_LAYOUT_INT4_SYM_F32_G128, 128, 68, unpack_int4_sym_f32_g128},
    {1019, LR_LAYOUT_INT8_SYM_F32_G32, 32, 36, unpack_int8_sym_f32_g32},
    {1020, LR_LAYOUT_INT8_SYM_F32_G128, 128, 132, unpack_int8_sym_f32_g128},
    {1021, LR_LAYOUT_INT4_ZP_F32_G32, 32, 21, unpack_int4_zp_f32_g32},
    {1022, LR_LAYOUT_INT8_ZP_F32_G32, 32, 37, unpack_int8_zp_f32_g32},
};

const Source* find_source(int32_t gguf_type) {
  for (const Source& source : kSources)
    if (source.gguf_type == gguf_type) return &source;
  return nullptr;
}

enum { PIECE = 256 };  // columns of a row that is dequantized from its blocks: whole blocks of every type

// The number at `index` of a row of plain numbers, as float32.
float plain_number(int32_t gguf_type, const uint8_t* raw, int32_t index) {
  const auto load = [&](auto value) {
    memcpy(&value, raw + (int64_t)index * (int64_t)sizeof value, sizeof value);
    return (float)value;
  };
  switch (gguf_type) {
    case 24: return load(int8_t());
    case 25: return load(int16_t());
    case 26: return load(int32_t());
    case 27: return load(int64_t());
    case 28: return load(double());
    default: return load(float());
  }
}

// A row of plain numbers into one lane of a group; columns up to the next multiple of 32 become zero.
void write_plain(const lr_layout& layout, int32_t gguf_type, const uint8_t* raw, int32_t n_cols, uint8_t* group, int lane) {
  const int32_t padded = (n_cols + 31) / 32 * 32;
  if (layout.code_bits == LR_CODE_BITS_F32) {
    for (int32_t k = 0; k < padded; k++) {
      const float value = raw && k < n_cols ? plain_number(gguf_type, raw, k) : 0.0f;
      memcpy(group + 64 * (int64_t)k + 4 * lane, &value, 4);
    }
    return;
  }
  if (layout.code_bits == LR_CODE_BITS_F8) {
    for (int32_t k = 0; k < padded; k++) group[16 * (int64_t)k + lane] = raw && k < n_cols ? raw[k] : 0;
    return;
  }
  const bool pairs = layout.code_bits == LR_CODE_BITS_BF16;
  for (int32_t k = 0; k < padded; k++) {
    uint16_t bits = 0;
    if (raw && k < n_cols) memcpy(&bits, raw + 2 * (int64_t)k, 2);
    memcpy(group + (pairs ? 64 * (int64_t)(k / 2) + 4 * lane + k % 2 * 2 : 32 * (int64_t)k + 2 * lane), &bits, 2);
  }
}

// 32 codes of one lane.
void write_codes(int32_t code_bits, const uint8_t* codes, uint8_t* to, uint8_t* high, int lane) {
  if (code_bits == LR_CODE_BITS_F8) {
    for (int k = 0; k < 32; k++) to[16 * k + lane] = codes[k];
    return;
  }
  if (code_bits == LR_CODE_BITS_NF4) {
    for (int k = 0; k < 32; k += 2) to[8 * k + lane] = (uint8_t)(codes[k] | codes[k + 1] << 4);
    return;
  }
  uint32_t word[8];
  memcpy(word, codes, 32);
  to += 4 * lane;
  high += 4 * lane;
  if (code_bits == LR_CODE_BITS_8) {
    for (int v = 0; v < 8; v++) memcpy(to + 64 * v, &word[v], 4);
    return;
  }
  if (code_bits == LR_CODE_BITS_2) {
    for (int v = 0; v < 2; v++) {
      uint32_t fields = 0;
      for (int f = 0; f < 4; f++) fields |= (word[4 * v + f] & 0x03030303) << (2 * f);
      memcpy(to + 64 * v, &fields, 4);
    }
    return;
  }
  for (int v = 0; v < 4; v++) {
    const uint32_t both = (word[2 * v] & 0x0f0f0f0f) | (word[2 * v + 1] & 0x0f0f0f0f) << 4;
    memcpy(to + 64 * v, &both, 4);
  }
  if (code_bits == LR_CODE_BITS_4_1) {
    uint32_t bits = 0;
    for (int v = 0; v < 8; v++) bits |= (word[v] >> 4 & 0x01010101) << v;
    memcpy(high, &bits, 4);
  }
  if (code_bits == LR_CODE_BITS_4_2)
    for (int half = 0; half < 2; half++) {
      uint32_t bits = 0;
      for (int v = 0; v < 4; v++) bits |= (word[4 * half + v] >> 4 & 0x03030303) << (2 * v);
      memcpy(high + 64 * half, &bits, 4);
    }
}

// The scales of a file's block, which are those from `first` on in a block of the layout.
void write_scales(const lr_layout& layout, const Block& block, int n, int first, uint8_t* scales, uint8_t* minima,
                  int lane) {
  const int bytes = lr_scale_bytes(layout), minimum_bytes = lr_minimum_bytes(layout);
  for (int g = 0; g < n; g++) {
    uint8_t *s = scales + (first + g) * bytes, *m = minima + (first + g) * minimum_bytes;
    switch (layout.scale) {
      case LR_SCALE_FP16_MIN: memcpy(m + 2 * lane, &block.fp16_min[g], 2); [[fallthrough]];
      case LR_SCALE_FP16: memcpy(s + 2 * lane, &block.fp16_scale[g], 2); break;
      case LR_SCALE_FP16_ZERO:
        memcpy(s + 2 * lane, &block.fp16_scale[g], 2);
        m[lane] = block.minimum[g];
        break;
      case LR_SCALE_F32_MIN: memcpy(m + 4 * lane, &block.f32_min, 4); [[fallthrough]];
      case LR_SCALE_F32: memcpy(s + 4 * lane, &block.super, 4); break;
      case LR_SCALE_F32_ZERO:
        memcpy(s + 4 * lane, &block.super, 4);
        m[lane] = block.minimum[g];
        break;
      case LR_SCALE_SUPER_MIN_4: s[lane] = (uint8_t)(block.scale[g] | block.minimum[g] << 4); break;
      default: s[lane] = block.scale[g];
    }
  }
}

// The scales and minima of eight groups, 6 bits each.
void write_six_bits(const Block& block, uint8_t* to) {
  for (int g = 0; g < 4; g++) {
    const uint8_t last = block.minimum[4 + g];
    to[16 * g] = (uint8_t)(block.scale[g] | last << 6);
    to[64 + 16 * g] = (uint8_t)(block.minimum[g] | last >> 2 << 6);
    to[128 + 16 * g] = (uint8_t)(block.scale[4 + g] | last >> 4 << 6);
  }
}

// A row of blocks into one lane of a group; null: zeros.
void write_blocks(const lr_layout& layout, const Source& source, const uint8_t* raw, int32_t n_cols, uint8_t* group,
                  int lane) {
  const lr_block_parts parts = lr_parts(layout);
  const int32_t runs = n_cols / 32, block_runs = source.block_columns / 32;
  const int block_groups = source.block_columns / layout.group;
  Block blocks[8] = {};  // all are read before the first is written out: a store that is loaded at once is waited for
  for (int32_t first = 0; first < runs; first += 8) {
    const int32_t n = runs - first < 8 ? runs - first : 8;
    uint8_t* high = group + n * parts.codes;
    uint8_t* scales = high + n * parts.high;
    uint8_t* minima = scales + n * parts.scales;
    uint8_t* super_scales = minima + n * parts.minima;
    for (int32_t i = 0; raw && i < n; i += block_runs, raw += source.block_bytes)
      source.unpack(raw, &blocks[i / block_runs]);
    for (int32_t i = 0; i < n; i++)
      write_codes(layout.code_bits, blocks[i / block_runs].code + 32 * (i % block_runs), group + i * parts.codes,
                  high + i * parts.high, lane);
    for (int32_t i = 0; i < n / block_runs; i++) {
      if (layout.scale == LR_SCALE_SUPER_MIN_6) write_six_bits(blocks[i], scales + lane);
      else write_scales(layout, blocks[i], block_groups, i * block_groups, scales, minima, lane);
    }
    if (layout.scale == LR_SCALE_SUPER_I8) {
      memcpy(super_scales + 4 * lane, &blocks[0].super, 4);
    } else if (parts.super_scales) {
      memcpy(super_scales + 2 * lane, &blocks[0].super_fp16, 2);
      memcpy(super_scales + 32 + 2 * lane, &blocks[0].super_fp16_min, 2);
    }
    group += lr_block_bytes(parts, n);
  }
}

}  // namespace

int32_t lr_layout_for(int32_t gguf_type) {
  const Source* source = find_source(gguf_type);
  return source ? source->layout : -1;
}

int64_t lr_row_bytes(int32_t gguf_type, int32_t n_cols) {
  const Source* source = find_source(gguf_type);
  if (!source || n_cols < 1 || n_cols % source->block_columns) return -1;
  return (int64_t)n_cols / source->block_columns * source->block_bytes;
}

int lr_pack(const lr_matrix* m, int32_t gguf_type, const void* raw, int32_t first_row, int32_t n_rows) {
  const Source* source = find_source(gguf_type);
  if (!m || !raw || !source || source->layout != m->layout || first_row < 0 || n_rows < 0 ||
      first_row > m->n_rows - n_rows || lr_packed_bytes(m->layout, m->n_rows, m->n_cols) != m->n_bytes)
    return LR_BAD_ARGUMENT;
  const int64_t row_bytes = lr_row_bytes(gguf_type, m->n_cols);
  if (row_bytes < 0) return LR_BAD_ARGUMENT;
  if (!has_grid(gguf_type)) return LR_UNSUPPORTED;

  const lr_layout& layout = lr_layouts[m->layout];
  const int64_t group_bytes = lr_group_bytes(lr_parts(layout), m->n_cols);
  const int32_t end = first_row + n_rows;
  const int32_t padded_end = end == m->n_rows ? (end + 15) / 16 * 16 : end;  // the last slab clears the rest of its group
  for (int32_t row = first_row; row < padded_end; row++) {
    const uint8_t* from = row < end ? (const uint8_t*)raw + (row - first_row) * row_bytes : nullptr;
    uint8_t* group = (uint8_t*)m->data + row / 16 * group_bytes;
    if (source->unpack) write_blocks(layout, *source, from, m->n_cols, group, row % 16);
    else write_plain(layout, gguf_type, from, m->n_cols, group, row % 16);
  }
  return LR_OK;
}

int lr_dequantize_blocks(int32_t gguf_type, const void* raw, int32_t n_cols, float* out) {
  const Source* source = find_source(gguf_type);
  if (!source || !raw || !out || lr_row_bytes(gguf_type, n_cols) < 0) return LR_BAD_ARGUMENT;
  alignas(64) uint8_t group[PIECE * 16 * sizeof(float)];  // a row of one layout block and 15 that nobody reads
  const uint8_t* from = (const uint8_t*)raw;
  for (int32_t first = 0; first < n_cols; first += PIECE) {
    const int32_t n = n_cols - first < PIECE ? n_cols - first : PIECE;
    const lr_matrix piece = {16, n, source->layout, 0, group, lr_packed_bytes(source->layout, 16, n)};
    if (const int wrong = lr_pack(&piece, gguf_type, from, 0, 1)) return wrong;
    lr_dequantize_row(&piece, 0, out + first);
    from += lr_row_bytes(gguf_type, n);
  }
  return LR_OK;
}

// The block types with scales and codes of their own, and the ternary ones.
#include "layouts/unpack_blocks.h"
#include "layouts/bit_fields.h"
#include "simd/fp16.h"

void unpack_q4_0(const uint8_t* raw, Block* b) {
  b->fp16_scale[0] = u16_at(raw);
  unpack_fields<4, 16>(raw + 2, 16, b->code);
}

void unpack_q4_1(const uint8_t* raw, Block* b) {
  b->fp16_scale[0] = u16_at(raw);
  b->fp16_min[0] = u16_at(raw + 2);
  unpack_fields<4, 16>(raw + 4, 16, b->code);
}

static void unpack_five_bits(const uint8_t* raw, uint8_t* code) {  // 4 bytes of fifth bits, then nibbles
  uint8_t fifth[32];
  unpack_fields<1, 1>(raw, 4, fifth);
  unpack_fields<4, 16>(raw + 4, 16, code);
  for (int i = 0; i < 32; i++) code[i] |= (uint8_t)(fifth[i] << 4);
}

void unpack_q5_0(const uint8_t* raw, Block* b) {
  b->fp16_scale[0] = u16_at(raw);
  unpack_five_bits(raw + 2, b->code);
}

void unpack_q5_1(const uint8_t* raw, Block* b) {
  b->fp16_scale[0] = u16_at(raw);
  b->fp16_min[0] = u16_at(raw + 2);
  unpack_five_bits(raw + 4, b->code);
}

void unpack_q8_0(const uint8_t* raw, Block* b) {
  b->fp16_scale[0] = u16_at(raw);
  memcpy(b->code, raw + 2, 32);
}

void unpack_mxfp4(const uint8_t* raw, Block* b) {
  b->scale[0] = raw[0];
  unpack_fields<4, 16>(raw + 1, 16, b->code);
}

// Fp16 of an unsigned e4m3 (bias 7, 0x7f counts as 0) as IEEE fp16_scale, exactly.
static uint16_t e4m3_to_fp16(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (code == 0x7f || (exponent == 0 && mantissa == 0)) return 0;
  if (exponent) return (uint16_t)((exponent + 7) << 10 | mantissa << 7);
  const int top = mantissa >= 4 ? 2 : mantissa >= 2 ? 1 : 0;  // mantissa · 2^-10
  return (uint16_t)((top + 5) << 10 | (mantissa << (10 - top) & 0x3ff));
}

void unpack_nvfp4(const uint8_t* raw, Block* b) {
  for (int i = 0; i < 4; i++) b->fp16_scale[i] = e4m3_to_fp16(raw[i]);
  unpack_fields<4, 8>(raw + 4, 32, b->code);
}

void unpack_q2_k(const uint8_t* raw, Block* b) {
  for (int i = 0; i < 16; i++) {
    b->scale[i] = raw[i] & 15;
    b->minimum[i] = raw[i] >> 4;
  }
  unpack_fields<2, 32>(raw + 16, 64, b->code);
  b->super_fp16 = u16_at(raw + 80);
  b->super_fp16_min = u16_at(raw + 82);
}

void unpack_q3_k(const uint8_t* raw, Block* b) {  // the third bit is stored inverted: code - 4 is the number
  uint8_t third[256], high[16];
  unpack_fields<1, 32>(raw, 32, third);
  unpack_fields<2, 32>(raw + 32, 64, b->code);
  for (int i = 0; i < 256; i++) b->code[i] |= (uint8_t)(third[i] << 2);
  unpack_fields<4, 8>(raw + 96, 8, b->scale);
  unpack_fields<2, 4>(raw + 104, 4, high);
  for (int i = 0; i < 16; i++) b->scale[i] = (uint8_t)((b->scale[i] | high[i] << 4) - 32);
  b->super = fp16_to_float(raw + 108);
}

static void unpack_k_scales(const uint8_t* raw, Block* b) {  // head of Q4_K and Q5_K
  b->super_fp16 = u16_at(raw);
  b->super_fp16_min = u16_at(raw + 2);
  const uint8_t *first = raw + 4, *second = raw + 8, *third = raw + 12;
  for (int i = 0; i < 4; i++) {
    b->scale[i] = first[i] & 63;
    b->minimum[i] = second[i] & 63;
    b->scale[4 + i] = (uint8_t)((third[i] & 15) | (first[i] >> 2 & 48));
    b->minimum[4 + i] = (uint8_t)(third[i] >> 4 | (second[i] >> 2 & 48));
  }
}

void unpack_q4_k(const uint8_t* raw, Block* b) {
  unpack_k_scales(raw, b);
  unpack_fields<4, 32>(raw + 16, 128, b->code);
}

void unpack_q5_k(const uint8_t* raw, Block* b) {
  uint8_t fifth[256];
  unpack_k_scales(raw, b);
  unpack_fields<1, 32>(raw + 16, 32, fifth);
  unpack_fields<4, 32>(raw + 48, 128, b->code);
  for (int i = 0; i < 256; i++) b->code[i] |= (uint8_t)(fifth[i] << 4);
}

void unpack_q6_k(const uint8_t* raw, Block* b) {
  uint8_t high[256];
  unpack_fields<4, 64>(raw, 128, b->code);
  unpack_fields<2, 32>(raw + 128, 64, high);
  for (int i = 0; i < 256; i++) b->code[i] |= (uint8_t)(high[i] << 4);
  memcpy(b->scale, raw + 192, 16);
  b->super = fp16_to_float(raw + 208);
}

void unpack_q8_k(const uint8_t* raw, Block* b) {
  memcpy(&b->super, raw, 4);
  memset(b->scale, 1, 16);
  memcpy(b->code, raw + 4, 256);
}

void unpack_iq4_xs(const uint8_t* raw, Block* b) {
  uint8_t low[8], high[8];
  b->super = fp16_to_float(raw);
  unpack_fields<2, 1>(raw + 2, 2, high);
  unpack_fields<4, 1>(raw + 4, 4, low);
  for (int i = 0; i < 8; i++) b->scale[i] = (uint8_t)((low[i] | high[i] << 4) - 32);
  unpack_fields<4, 16>(raw + 8, 128, b->code);
}

// Ternary digits of bytes that are fractions of 256: all first digits, then all second ones.
static uint8_t* unpack_ternary(const uint8_t* raw, int n_bytes, int n_digits, uint8_t* out) {
  static const uint8_t powers[5] = {1, 3, 9, 27, 81};
  for (int d = 0; d < n_digits; d++)
    for (int i = 0; i < n_bytes; i++) {
      const uint8_t rest = (uint8_t)(raw[i] * powers[d]);
      *out++ = (uint8_t)((rest * 3 >> 8) - 1);
    }
  return out;
}

void unpack_tq1_0(const uint8_t* raw, Block* b) {
  b->super = fp16_to_float(raw + 52);
  memset(b->scale, 1, 16);
  uint8_t* out = unpack_ternary(raw, 32, 5, b->code);
  out = unpack_ternary(raw + 32, 16, 5, out);
  unpack_ternary(raw + 48, 4, 4, out);
}

void unpack_tq2_0(const uint8_t* raw, Block* b) {
  b->super = fp16_to_float(raw + 64);
  memset(b->scale, 1, 16);
  unpack_fields<2, 32>(raw, 64, b->code);
  for (int i = 0; i < 256; i++) b->code[i] -= 1;
}

// n codes that follow each other bit by bit, the lowest bit first. Those of 8 bits are signed in their layout.
template <int bits, int n> static void unpack_stream(const uint8_t* raw, uint8_t* code) {
  for (int i = 0; i < n; i += 8, raw += bits) {
    uint64_t eight = 0;
    memcpy(&eight, raw, bits);
    for (int j = 0; j < 8; j++) code[i + j] = (uint8_t)((eight >> bits * j & ((1 << bits) - 1)) ^ (bits == 8 ? 0x80 : 0));
  }
}

// The scale of a group and its minimum, of either type of scale; what follows them in the file.
static const uint8_t* unpack_scale(const uint8_t* raw, uint16_t* fp16) {
  *fp16 = u16_at(raw);
  return raw + 2;
}
static const uint8_t* unpack_scale(const uint8_t* raw, float* f32) {
  memcpy(f32, raw, 4);
  return raw + 4;
}
struct Fp16 {
  static uint16_t* scale(Block* b) { return b->fp16_scale; }
  static uint16_t* minimum(Block* b) { return b->fp16_min; }
};
struct F32 {
  static float* scale(Block* b) { return &b->super; }
  static float* minimum(Block* b) { return &b->f32_min; }
};

// Scale and codes: of integers they count from half of their range.
template <class Scale, int bits, int n> static void unpack_symmetric(const uint8_t* raw, Block* b) {
  raw = unpack_scale(raw, Scale::scale(b));
  unpack_stream<bits, n>(raw, b->code);
}

// An affine group: scale, minimum and codes.
template <class Scale, int bits, int n> static void unpack_affine(const uint8_t* raw, Block* b) {
  raw = unpack_scale(raw, Scale::scale(b));
  raw = unpack_scale(raw, Scale::minimum(b));
  unpack_stream<bits, n>(raw, b->code);
}

// Scale, zero point and codes.
template <class Scale, int bits, int n> static void unpack_zero_point(const uint8_t* raw, Block* b) {
  raw = unpack_scale(raw, Scale::scale(b));
  b->minimum[0] = *raw++;
  unpack_stream<bits, n>(raw, b->code);
}

void unpack_int2_g64(const uint8_t* raw, Block* b) { unpack_affine<Fp16, 2, 64>(raw, b); }
void unpack_int4_g64(const uint8_t* raw, Block* b) { unpack_affine<Fp16, 4, 64>(raw, b); }
void unpack_int5_g64(const uint8_t* raw, Block* b) { unpack_affine<Fp16, 5, 64>(raw, b); }
void unpack_int6_g32(const uint8_t* raw, Block* b) { unpack_affine<Fp16, 6, 32>(raw, b); }
void unpack_int6_g64(const uint8_t* raw, Block* b) { unpack_affine<Fp16, 6, 64>(raw, b); }
void unpack_int8_g32(const uint8_t* raw, Block* b) { unpack_affine<Fp16, 8, 32>(raw, b); }
void unpack_int8_g64(const uint8_t* raw, Block* b) { unpack_affine<Fp16, 8, 64>(raw, b); }
void unpack_int4_zp_g32(const uint8_t* raw, Block* b) { unpack_zero_point<Fp16, 4, 32>(raw, b); }
void unpack_int4_zp_g128(const uint8_t* raw, Block* b) { unpack_zero_point<Fp16, 4, 128>(raw, b); }
void unpack_int8_zp_g32(const uint8_t* raw, Block* b) { unpack_zero_point<Fp16, 8, 32>(raw, b); }
void unpack_int4_f32_g32(const uint8_t* raw, Block* b) { unpack_affine<F32, 4, 32>(raw, b); }
void unpack_int8_f32_g32(const uint8_t* raw, Block* b) { unpack_affine<F32, 8, 32>(raw, b); }
void unpack_int4_sym_f32_g32(const uint8_t* raw, Block* b) { unpack_symmetric<F32, 4, 32>(raw, b); }
void unpack_int4_sym_f32_g128(const uint8_t* raw, Block* b) { unpack_symmetric<F32, 4, 128>(raw, b); }
void unpack_int8_sym_f32_g32(const uint8_t* raw, Block* b) { unpack_symmetric<F32, 8, 32>(raw, b); }
void unpack_int8_sym_f32_g128(const uint8_t* raw, Block* b) { unpack_symmetric<F32, 8, 128>(raw, b); }
void unpack_int4_zp_f32_g32(const uint8_t* raw, Block* b) { unpack_zero_point<F32, 4, 32>(raw, b); }
void unpack_int8_zp_f32_g32(const uint8_t* raw, Block* b) { unpack_zero_point<F32, 8, 32>(raw, b); }
void unpack_nf4_g64(const uint8_t* raw, Block* b) { unpack_symmetric<F32, 4, 64>(raw, b); }

void unpack_f8_g128(const uint8_t* raw, Block* b) {
  memcpy(&b->super, raw, 4);
  memcpy(b->code, raw + 4, 128);
}

void unpack_mxfp8(const uint8_t* raw, Block* b) {
  b->scale[0] = raw[0];
  memcpy(b->code, raw + 1, 32);
}

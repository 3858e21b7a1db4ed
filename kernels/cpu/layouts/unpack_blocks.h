// Unpacking a file's blocks, one function for each quant type.
#pragma once
#include <stdint.h>

// One block taken apart: codes by column, the rest by scale group. A layout uses the fields of its own kind of scale.
// Codes of signed layouts are int8.
struct Block {
  uint8_t code[256];
  uint16_t fp16_scale[4], fp16_min[4];
  uint8_t scale[16], minimum[16];
  uint16_t super_fp16, super_fp16_min;
  float super;    // of LR_SCALE_F32 and its like the only one
  float f32_min;  // of LR_SCALE_F32_MIN
};

typedef void (*BlockUnpacker)(const uint8_t* raw, Block* block);

void unpack_q4_0(const uint8_t* raw, Block* block);  // IQ4_NL too: codes are codes
void unpack_q4_1(const uint8_t* raw, Block* block);
void unpack_q5_0(const uint8_t* raw, Block* block);
void unpack_q5_1(const uint8_t* raw, Block* block);
void unpack_q8_0(const uint8_t* raw, Block* block);
void unpack_mxfp4(const uint8_t* raw, Block* block);
void unpack_nvfp4(const uint8_t* raw, Block* block);
void unpack_q2_k(const uint8_t* raw, Block* block);
void unpack_q3_k(const uint8_t* raw, Block* block);
void unpack_q4_k(const uint8_t* raw, Block* block);
void unpack_q5_k(const uint8_t* raw, Block* block);
void unpack_q6_k(const uint8_t* raw, Block* block);
void unpack_q8_k(const uint8_t* raw, Block* block);
void unpack_iq4_xs(const uint8_t* raw, Block* block);
void unpack_tq1_0(const uint8_t* raw, Block* block);
void unpack_tq2_0(const uint8_t* raw, Block* block);
void unpack_iq1_s(const uint8_t* raw, Block* block);
void unpack_iq1_m(const uint8_t* raw, Block* block);
void unpack_iq2_xxs(const uint8_t* raw, Block* block);
void unpack_iq2_xs(const uint8_t* raw, Block* block);
void unpack_iq2_s(const uint8_t* raw, Block* block);
void unpack_iq3_xxs(const uint8_t* raw, Block* block);
void unpack_iq3_s(const uint8_t* raw, Block* block);
void unpack_int2_g64(const uint8_t* raw, Block* block);
void unpack_int4_g64(const uint8_t* raw, Block* block);
void unpack_int5_g64(const uint8_t* raw, Block* block);
void unpack_int6_g32(const uint8_t* raw, Block* block);
void unpack_int6_g64(const uint8_t* raw, Block* block);
void unpack_int8_g32(const uint8_t* raw, Block* block);
void unpack_int8_g64(const uint8_t* raw, Block* block);
void unpack_f8_g128(const uint8_t* raw, Block* block);
void unpack_mxfp8(const uint8_t* raw, Block* block);
void unpack_int4_zp_g32(const uint8_t* raw, Block* block);
void unpack_int4_zp_g128(const uint8_t* raw, Block* block);
void unpack_int8_zp_g32(const uint8_t* raw, Block* block);
void unpack_nf4_g64(const uint8_t* raw, Block* block);
void unpack_int4_f32_g32(const uint8_t* raw, Block* block);
void unpack_int8_f32_g32(const uint8_t* raw, Block* block);
void unpack_int4_sym_f32_g32(const uint8_t* raw, Block* block);
void unpack_int4_sym_f32_g128(const uint8_t* raw, Block* block);
void unpack_int8_sym_f32_g32(const uint8_t* raw, Block* block);
void unpack_int8_sym_f32_g128(const uint8_t* raw, Block* block);
void unpack_int4_zp_f32_g32(const uint8_t* raw, Block* block);
void unpack_int8_zp_f32_g32(const uint8_t* raw, Block* block);

// Whether blocks of this type can be read: grid types need lr_set_grid first.
bool has_grid(int32_t gguf_type);

// Tiles of quantised weights, 16 rows x 64 columns, and how a lane turns its part into floats.
// localrun/backends/gpu/tiles.py packs them and says where every bit lies; a layout is a set of these macros:
//
//   LOW_BITS HIGH_BITS   bits of the code planes: 4 0, 4 1, 4 2, 2 0, 2 1, 8 0
//   SIGNED_CODES         codes are in two's complement
//   TABLE                codes are names of numbers: 1 IQ4, 2 FP4
//   SCALE                one of SCALE_* below, for a GROUP of 16 or 32 columns
//
// Lane 4g + t has rows g and g + 8 and of every run of 16 columns the four from 4t on. A matrix is its regions one after
// the other (planes, scales, super-scales), each row tile by row tile, tile by tile.
//
// Operations a weight, where a shift counts four and a conversion is avoided: 4.5 of one plane, 8.5 of two, and for a scale
// of 16 columns one or two more. A multiply-add for each row of x comes on top. An M1 Max has time for seven while it reads
// a weight of Q4_0, for eleven while it reads one of Q6_K.
#pragma once
#include "device.metal"

#define SCALE_FP16 0
#define SCALE_FP16_MIN 1  // and an fp16 that is added
#define SCALE_E8M0 2      // a power of two: 2^(byte - 128)
#define SCALE_SUPER_I8 3  // int8 times a float of 256 columns
#define SCALE_SUPER_MIN 4  // uint8 times an fp16 of 256 columns, and the same again for what is subtracted

#define CODE_BITS (LOW_BITS + HIGH_BITS)
#define HAS_MINIMA (SCALE == SCALE_FP16_MIN || SCALE == SCALE_SUPER_MIN)
#define HAS_SUPERS (SCALE == SCALE_SUPER_I8 || SCALE == SCALE_SUPER_MIN)
#define N_GROUPS (64 / GROUP)
#define SCALE_BYTES (SCALE == SCALE_FP16 || SCALE == SCALE_FP16_MIN ? 2 : 1)
#define SCALE_WORDS (N_GROUPS * 2 * SCALE_BYTES * (1 + HAS_MINIMA) / 4)  // of rows g and g + 8

struct lr_row_tile {  // a lane's parts of its first tile
  device const uchar *low, *high, *scales, *supers;
};
struct lr_tile {  // what a lane loads of a tile
  uint low[LOW_BITS], high[HIGH_BITS ? HIGH_BITS : 1], scales[SCALE_WORDS], supers[2];
};

LR_INLINE lr_row_tile lr_find_row_tile(device const uchar* weights, int n_rows, int n_tiles, int row_tile, int lane) {
  const long all = long((n_rows + 15) / 16) * n_tiles, first = long(row_tile) * n_tiles;
  device const uchar* const high = weights + all * (128 * LOW_BITS);
  device const uchar* const scales = high + all * (128 * HIGH_BITS);
  device const uchar* const supers = scales + all * (32 * SCALE_WORDS);
  return {weights + first * (128 * LOW_BITS) + lane * (LOW_BITS == 8 ? 16 : 4 * LOW_BITS),
          high + first * (128 * HIGH_BITS) + lane * (4 * HIGH_BITS),
          scales + first * (32 * SCALE_WORDS) + lane / 4 * (4 * SCALE_WORDS), supers + first * 16 + lane / 4 * 8};
}

// 4N bytes of a lane; eight words are four from the first half of a tile and four from the second.
template <int N> LR_INLINE void lr_load_words(thread uint* to, device const uchar* from) {
  if (N >= 4) {
    const uint4 v = *(device const uint4*)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }
  if (N == 8) {
    const uint4 v = *(device const uint4*)(from + 512);
    to[4] = v.x, to[5] = v.y, to[6] = v.z, to[7] = v.w;
  }
  if (N == 2) {
    const uint2 v = *(device const uint2*)from;
    to[0] = v.x, to[1] = v.y;
  }
  if (N == 1) to[0] = *(device const uint*)from;
}
LR_INLINE void lr_load_tile(thread lr_tile& w, thread const lr_row_tile& at, int tile) {
  lr_load_words<LOW_BITS>(w.low, at.low + long(tile) * (128 * LOW_BITS));
#if HIGH_BITS
  lr_load_words<HIGH_BITS>(w.high, at.high + long(tile) * (128 * HIGH_BITS));
#endif
  lr_load_words<SCALE_WORDS>(w.scales, at.scales + long(tile) * (32 * SCALE_WORDS));
#if HAS_SUPERS
  lr_load_words<2>(w.supers, at.supers + long(tile / 4) * 64);
#endif
}

// `bits` bits of byte j of a word, from bit `field` of the byte on, times 2^power. They stay where they are and become the
// mantissa of a power of two, which is then taken away: a mask, an xor and a subtraction, and one shift for two bytes.
LR_INLINE float lr_field(uint word, int j, int field, int bits, int power, bool is_signed) {
  const int at = 8 * (j % 2) + field;
  const uint here = j < 2 ? word : word >> 16;
  const uint zero = uint(150 - at + power) << 23 | (is_signed ? 1u << (at + bits - 1) : 0u);
  return as_type<float>((here & ((1u << bits) - 1u) << at) ^ zero) - as_type<float>(zero);
}

#if TABLE
#if TABLE == 1
constant float lr_table[16] = {-127.f, -104.f, -83.f, -65.f, -49.f, -35.f, -22.f, -10.f,
                               1.f,    13.f,   25.f,  38.f,  53.f,  69.f,  89.f,  113.f};
#else
constant float lr_table[16] = {0.f, 1.f, 2.f, 3.f, 4.f, 6.f, 8.f, 12.f, 0.f, -1.f, -2.f, -3.f, -4.f, -6.f, -8.f, -12.f};
#endif
#endif

// Code j of run i and row g + 8h, as a number.
LR_INLINE float lr_code(thread const lr_tile& w, int i, int h, int j) {
#if TABLE  // the nibbles of a word are the eight of both rows in turn
  return lr_table[w.low[i] >> (16 * h + 4 * j) & 15u];
#else
  const int n = 2 * i + h;  // field n % (8 / bits) of word n * bits / 8
  float code = lr_field(w.low[n * LOW_BITS / 8], j, n % (8 / LOW_BITS) * LOW_BITS, LOW_BITS, 0, SIGNED_CODES && HIGH_BITS == 0);
#if HIGH_BITS
  code += lr_field(w.high[n * HIGH_BITS / 8], j, n % (8 / HIGH_BITS) * HIGH_BITS, HIGH_BITS, LOW_BITS, SIGNED_CODES);
#endif
  return code;
#endif
}

LR_INLINE float lr_byte_at(thread const uint* words, int index, bool is_signed) {
  return lr_field(words[index / 4], index % 4, 0, 8, 0, is_signed);
}
LR_INLINE float lr_half_at(thread const uint* words, int index) {
  return index % 2 ? lr_high_half(words[index / 2]) : lr_low_half(words[index / 2]);
}
// The scale of group q for row g + 8h.
LR_INLINE float lr_scale(thread const lr_tile& w, int q, int h) {
  const int index = 2 * q + h;
#if SCALE == SCALE_FP16 || SCALE == SCALE_FP16_MIN
  return lr_half_at(w.scales, index);
#elif SCALE == SCALE_E8M0
  const uint e = w.scales[index / 4] >> 8 * (index % 4) & 255u;
  return as_type<float>(e > 1 ? (e - 1) << 23 : 0x00200000u << e);
#elif SCALE == SCALE_SUPER_I8
  return lr_byte_at(w.scales, index, true) * as_type<float>(w.supers[h]);
#else
  return lr_byte_at(w.scales, index, false) * lr_half_at(w.supers, h);
#endif
}
#if HAS_MINIMA
// What is added to a number of group q and row g + 8h.
LR_INLINE float lr_minimum(thread const lr_tile& w, int q, int h) {
  const int index = 2 * N_GROUPS + 2 * q + h;
#if SCALE == SCALE_FP16_MIN
  return lr_half_at(w.scales, index);
#else
  return lr_byte_at(w.scales, index, false) * -lr_half_at(w.supers, 2 + h);
#endif
}
#endif

// The four numbers of run i and row g + 8h, to the bit what the file says: code times scale is exact where a minimum is added.
LR_INLINE void lr_numbers(thread float* to, thread const lr_tile& w, int i, int h) {
  const float scale = lr_scale(w, i * 16 / GROUP, h);
#if HAS_MINIMA
  const float minimum = lr_minimum(w, i * 16 / GROUP, h);
#pragma unroll
  for (int j = 0; j < 4; j++) to[j] = fma(lr_code(w, i, h, j), scale, minimum);
#else
#pragma unroll
  for (int j = 0; j < 4; j++) to[j] = lr_code(w, i, h, j) * scale;
#endif
}

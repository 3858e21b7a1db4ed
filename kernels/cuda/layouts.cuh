// Tiles of quantised weights, 16 rows × 64 columns, and how a lane turns its part into fragments of the tensor cores.
// localrun/backends/gpu/tiles.py packs them and says where every bit lies; a layout is a set of these macros:
//
//   LOW_BITS HIGH_BITS   bits of the code planes: 4 0, 4 1, 4 2, 2 0, 2 1, 8 0
//   SIGNED_CODES         codes are in two's complement
//   TABLE                codes are names of numbers: 1 IQ4, 2 FP4
//   SCALE                one of SCALE_* below, for a GROUP of 16 or 32 columns
//
// A matrix is its regions one after the other (planes, scales, super-scales), each row tile by row tile, tile by tile.
#pragma once
#include "device.cuh"

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

// Signed codes are read into the top bits of a byte: as int8 they are so many times too large.
#define CODE_SHIFT (SIGNED_CODES ? 8 - CODE_BITS : 0)

struct lr_row_tile {  // a lane's parts of its first tile
  const uint8_t *low, *high, *scales, *supers;
};
struct lr_tile {  // what a lane loads of a tile
  uint32_t low[LOW_BITS], high[HIGH_BITS ? HIGH_BITS : 1], scales[SCALE_WORDS], supers[2];
};
// What a lane multiplies with: eight words of four codes, word 2i + h for run i of 16 columns and row g + 8h, and the
// scales of its two rows.
struct lr_weights {
  uint32_t codes[8];
  float scale[N_GROUPS][2], minimum[N_GROUPS][2];
};

LR_INLINE lr_row_tile lr_find_row_tile(const uint8_t* weights, int n_rows, int n_tiles, int row_tile, int lane) {
  const int64_t all = (int64_t)((n_rows + 15) / 16) * n_tiles, first = (int64_t)row_tile * n_tiles;
  const uint8_t *high = weights + all * (128 * LOW_BITS), *scales = high + all * (128 * HIGH_BITS);
  const uint8_t* supers = scales + all * (32 * SCALE_WORDS);
  return {weights + first * (128 * LOW_BITS) + lane * (LOW_BITS == 8 ? 16 : 4 * LOW_BITS),
          high + first * (128 * HIGH_BITS) + lane * (4 * HIGH_BITS),
          scales + first * (32 * SCALE_WORDS) + lane / 4 * (4 * SCALE_WORDS), supers + first * 16 + lane / 4 * 8};
}

// 4N bytes of a lane; eight words are four from the first half of a tile and four from the second.
template <int N> LR_INLINE void lr_load_words(uint32_t* to, const uint8_t* from) {
  if constexpr (N == 8) {
    lr_load_words<4>(to, from);
    lr_load_words<4>(to + 4, from + 512);
  } else if constexpr (N == 4) {
    const uint4 v = __ldg((const uint4*)from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else if constexpr (N == 2) {
    const uint2 v = __ldg((const uint2*)from);
    to[0] = v.x, to[1] = v.y;
  } else if constexpr (N == 1) {
    to[0] = __ldg((const uint32_t*)from);
  }
}

LR_INLINE void lr_load_tile(lr_tile& w, const lr_row_tile& at, int tile) {
  lr_load_words<LOW_BITS>(w.low, at.low + (int64_t)tile * (128 * LOW_BITS));
  lr_load_words<HIGH_BITS>(w.high, at.high + (int64_t)tile * (128 * HIGH_BITS));
  lr_load_words<SCALE_WORDS>(w.scales, at.scales + (int64_t)tile * (32 * SCALE_WORDS));
  if constexpr (HAS_SUPERS) lr_load_words<2>(w.supers, at.supers + (int64_t)(tile / 4) * 64);
}

// Field FIELD of every byte, moved to bit AT.
template <int BITS, int FIELD, int AT> LR_INLINE uint32_t lr_field(uint32_t word) {
  constexpr int by = AT - FIELD * BITS;
  return (by >= 0 ? word << (by & 31) : word >> (-by & 31)) & (((1u << BITS) - 1) << AT) * 0x01010101u;
}
template <int N> LR_INLINE void lr_codes_from(uint32_t (&codes)[8], const lr_tile& w) {
  constexpr int high = HIGH_BITS ? HIGH_BITS : 1;
  codes[N] = lr_field<LOW_BITS, N % (8 / LOW_BITS), CODE_SHIFT>(w.low[N * LOW_BITS / 8]);
  if constexpr (HIGH_BITS != 0)
    codes[N] |= lr_field<high, N % (8 / high), (CODE_SHIFT + LOW_BITS) % 8>(w.high[N * high / 8]);
  if constexpr (N < 7) lr_codes_from<N + 1>(codes, w);
}

#if TABLE
// Numbers 0 to 3, 4 to 7, … of the table, as bytes.
#undef TABLE_WORDS
#if TABLE == 1
#define TABLE_WORDS 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u
#else
#define TABLE_WORDS 0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu
#endif
// Four numbers by the four lowest nibbles: byte selection takes three bits of each, the fourth chooses between halves.
LR_INLINE uint32_t lr_look_up(uint32_t nibbles) {
  const uint32_t table[4] = {TABLE_WORDS}, which = nibbles & 0x7777u;
  const uint32_t below = __byte_perm(table[0], table[1], which), above = __byte_perm(table[2], table[3], which);
  return __byte_perm(below, above, 0x3210u | (nibbles & 0x8888u) >> 1);
}
#endif

LR_INLINE void lr_codes(uint32_t (&codes)[8], const lr_tile& w) {
#if TABLE
#pragma unroll
  for (int i = 0; i < 4; i++) codes[2 * i] = lr_look_up(w.low[i]), codes[2 * i + 1] = lr_look_up(w.low[i] >> 16);
#else
  lr_codes_from<0>(codes, w);
#endif
}

// 2^23 + byte `index`, as a float: conversions are slow.
LR_INLINE float lr_byte_at(const uint32_t* words, int index) {
  return __uint_as_float(__byte_perm(words[index / 4], 0x4b000000u, 0x7440u + index % 4));
}
LR_INLINE float lr_half_at(const uint32_t* words, int index) {
  return lr_half_to_float((uint16_t)(words[index / 2] >> 16 * (index % 2)));
}

// The scale of group q for row g + 8h.
LR_INLINE float lr_scale(const lr_tile& w, int q, int h) {
  const int index = 2 * q + h;
#if SCALE == SCALE_FP16 || SCALE == SCALE_FP16_MIN
  return lr_half_at(w.scales, index);
#elif SCALE == SCALE_E8M0
  const uint32_t e = w.scales[index / 4] >> 8 * (index % 4) & 255u;
  return __uint_as_float(e > 1 ? (e - 1) << 23 : 0x00200000u << e);
#elif SCALE == SCALE_SUPER_I8
  const uint32_t words[2] = {w.scales[0] ^ 0x80808080u, w.scales[SCALE_WORDS - 1] ^ 0x80808080u};
  return (lr_byte_at(words, index) - 8388736.f) * __uint_as_float(w.supers[h]);
#else
  const float super = lr_half_at(w.supers, h);
  return __fmaf_rn(lr_byte_at(w.scales, index), super, -8388608.f * super);
#endif
}
// What is added to a number of group q and row g + 8h.
LR_INLINE float lr_minimum(const lr_tile& w, int q, int h) {
#if SCALE == SCALE_FP16_MIN
  return lr_half_at(w.scales, 2 * N_GROUPS + 2 * q + h);
#elif SCALE == SCALE_SUPER_MIN
  const float super = -lr_half_at(w.supers, 2 + h);
  return __fmaf_rn(lr_byte_at(w.scales, 2 * N_GROUPS + 2 * q + h), super, -8388608.f * super);
#else
  return 0.f;
#endif
}

LR_INLINE void lr_unpack(lr_weights& to, const lr_tile& w) {
  lr_codes(to.codes, w);
#pragma unroll
  for (int q = 0; q < N_GROUPS; q++)
#pragma unroll
    for (int h = 0; h < 2; h++) to.scale[q][h] = lr_scale(w, q, h), to.minimum[q][h] = lr_minimum(w, q, h);
}

// Code j of word n as the number it stands for, to the bit what the file says.
LR_INLINE float lr_number(const lr_weights& w, int n, int j) {
  const float code = (float)(int8_t)(w.codes[n] >> 8 * j) * (1.f / (1 << CODE_SHIFT));
  const int q = n / 2 * 16 / GROUP, h = n % 2;
  return HAS_MINIMA ? w.scale[q][h] * code + w.minimum[q][h] : w.scale[q][h] * code;
}

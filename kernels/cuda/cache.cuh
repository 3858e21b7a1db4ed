// Keys and values as they are stored: KEY_BITS and VALUE_BITS are 32 (float), 16 (fp16), 8 (signed codes, and an fp16 scale for
// 128 dims) or 4 (codes; scales, then offsets; byte j has dims j and half of the head + j). ROTATES: they and the queries are
// turned by a Hadamard matrix. What is coded is also there in fp16, in the blocks of a ring: a query reads these of its own
// block and of block 0.
#pragma once
#include "device.cuh"
#ifndef KEY_BITS
#define KEY_BITS 16
#define VALUE_BITS 16
#define ROTATES 0
#endif
#define SCALE_DIMS 128
#define HAS_RING (KEY_BITS < 16 || VALUE_BITS < 16)

// Of a key and head: bytes, and numbers beside codes.
LR_INLINE constexpr int lr_row_bytes(int bits, int head_dim) { return head_dim * bits / 8; }
LR_INLINE constexpr int lr_n_sides(int bits, int head_dim) {
  return bits >= 16 ? 0 : (head_dim + SCALE_DIMS - 1) / SCALE_DIMS * (bits == 4 ? 2 : 1);
}

// Four codes, a byte each, as two pairs of fp16: (code - zero) · scale + offset, rounded once. fp16 with the bits 0x6400 + n
// is 1024 + n.
LR_INLINE uint2 lr_decoded(uint32_t codes, int zero, uint32_t scale, uint32_t offset) {
  const uint32_t one = 0x3c003c00u, minus = (0xe400u + zero) * 0x10001u;
  const uint32_t low = lr_fma_half2(__byte_perm(codes, 0x64646464u, 0x4140), one, minus);
  const uint32_t high = lr_fma_half2(__byte_perm(codes, 0x64646464u, 0x4342), one, minus);
  return make_uint2(lr_fma_half2(low, scale, offset), lr_fma_half2(high, scale, offset));
}
LR_INLINE uint32_t lr_twice(uint16_t half) { return half * 0x10001u; }

// Words of 32 bits that another kernel has written.
LR_INLINE void lr_words(uint32_t (&to)[1], const uint8_t* from) { to[0] = __ldcg((const uint32_t*)from); }
LR_INLINE void lr_words(uint32_t (&to)[2], const uint8_t* from) {
  const uint2 words = __ldcg((const uint2*)from);
  to[0] = words.x, to[1] = words.y;
}
LR_INLINE void lr_words(uint32_t (&to)[4], const uint8_t* from) {
  const uint4 words = __ldcg((const uint4*)from);
  to[0] = words.x, to[1] = words.y, to[2] = words.z, to[3] = words.w;
}

// The keys or values of one KV head in a block, heads of D dims; those of key k are k strides further.
template <int BITS, int D> struct Cells {
  const uint8_t* at;
  const uint16_t* sides;
  int stride, side_stride;

  // N neighbouring dims of a key, from a multiple of N on, as pairs of fp16.
  template <int N> __device__ void load(uint32_t (&to)[N / 2], int key, int dim) const {
    const uint8_t* row = at + key * stride;
    if constexpr (BITS == 16) {
      lr_words(to, row + 2 * dim);
    } else if constexpr (N < 4) {
      uint32_t four[2];
      load<4>(four, key, dim / 4 * 4);
      to[0] = four[dim / 2 % 2];
    } else {
      const uint16_t* side = sides + key * side_stride + dim / SCALE_DIMS;
      const bool upper = BITS == 4 && dim >= D / 2;
      // 127 · 516 is beyond the largest fp16, and no scale is larger.
      const uint16_t half = __ldcg(side);
      const uint32_t scale = lr_twice(BITS == 8 && half == 0x6008u ? 0x6007u : half);
      const uint32_t offset = BITS == 4 ? lr_twice(__ldcg(side + lr_n_sides(4, D) / 2)) : 0u;
      uint32_t codes[N / 4];
      lr_words(codes, row + (upper ? dim - D / 2 : dim));
#pragma unroll
      for (int i = 0; i < N / 4; i++) {
        const uint32_t four = BITS == 8 ? codes[i] ^ 0x80808080u : codes[i] >> (upper ? 4 : 0) & 0x0f0f0f0fu;
        const uint2 pairs = lr_decoded(four, BITS == 8 ? 128 : 8, scale, offset);
        to[2 * i] = pairs.x, to[2 * i + 1] = pairs.y;
      }
    }
  }

};

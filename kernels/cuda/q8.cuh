// Rows as the int8 tensor cores read them.
#pragma once
#include "numbers.cuh"

// Rows quantised per 32 columns. Columns are padded with zeros to `stride`, a multiple of 64; in each run of 64, byte
// 16t + 4i + j is column 16i + 4t + j, so that a lane's fragment of two products is 16 bytes in a row (see linear.cu).
struct Q8 {
  uint8_t* codes;  // [rows][stride]
  int2* groups;    // [stride / 32][padded_rows]: bits of the scale, sum of the codes
  int stride, padded_rows;
};

// Below this a group counts as zero: 127 / max would overflow.
#define MIN_ABSMAX 1e-30f

// Four columns from `column` on, of the 32 that eight lanes have together. A group that holds a NaN or an infinity has it as
// its scale, and zeros as its codes.
LR_INLINE void lr_store_q8(const Q8& to, int row, int column, const float (&y)[4]) {
  uint32_t top = 0;  // bits of |y| order like |y|, and NaN above all
#pragma unroll
  for (int j = 0; j < 4; j++) top = max(top, __float_as_uint(y[j]) & 0x7fffffffu);
#pragma unroll
  for (int by = 1; by < 8; by *= 2) top = max(top, __shfl_xor_sync(0xffffffffu, top, by));
  const float absmax = __uint_as_float(top);
  const bool fine = lr_is_finite(absmax) && absmax >= MIN_ABSMAX;
  const float inverse = 127.f / absmax;
  uint32_t word = 0;
  int sum = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const int code = fine ? __float2int_rn(y[j] * inverse) : 0;
    word |= ((uint32_t)code & 0xffu) << 8 * j, sum += code;
  }
#pragma unroll
  for (int by = 1; by < 8; by *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  if (column >= to.stride) return;
  const int i = column % 64 / 16, t = column % 16 / 4;
  *(uint32_t*)(to.codes + (int64_t)row * to.stride + column / 64 * 64 + 16 * t + 4 * i) = word;
  if (column % 32 == 0) {
    const float scale = absmax < MIN_ABSMAX ? 0.f : absmax / 127.f;
    to.groups[(int64_t)(column / 32) * to.padded_rows + row] = {(int)__float_as_uint(scale), sum};
  }
}

// The tiles of device.cuh for sm_75, out of the smaller ones that it has.
#pragma once

#define LR_TWO_HALVES(mma, r)                                              \
  {                                                                        \
    int top[2] = {c[0], c[1]}, bottom[2] = {c[2], c[3]};                   \
    const uint32_t a_top[1] = {a[2 * r]}, a_bottom[1] = {a[2 * r + 1]}, b_k[1] = {b[r]}; \
    mma(top, a_top, b_k);                                                  \
    mma(bottom, a_bottom, b_k);                                            \
    c[0] = top[0], c[1] = top[1], c[2] = bottom[0], c[3] = bottom[1];      \
  }
LR_INLINE void lr_mma_s8(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  LR_TWO_HALVES(lr_m8n8k16_s8, 0)
  LR_TWO_HALVES(lr_m8n8k16_s8, 1)
}
LR_INLINE void lr_mma_s8u8(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  LR_TWO_HALVES(lr_m8n8k16_s8u8, 0)
  LR_TWO_HALVES(lr_m8n8k16_s8u8, 1)
}
LR_INLINE void lr_mma_s8_k16(int (&c)[4], const uint32_t (&a)[2], const uint32_t (&b)[1]) { LR_TWO_HALVES(lr_m8n8k16_s8, 0) }
LR_INLINE void lr_mma_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const uint32_t a_low[2] = {a[0], a[1]}, a_high[2] = {a[2], a[3]}, b_low[1] = {b[0]}, b_high[1] = {b[1]};
  lr_m16n8k8_f16(c, a_low, b_low);
  lr_m16n8k8_f16(c, a_high, b_high);
}
// Turing has no bf16: every lane gathers its two rows of a and two columns of b, 8 bytes of k at a time.
LR_INLINE void lr_mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; half++)
#pragma unroll
    for (int from = 0; from < 4; from++) {
      const uint32_t rows[2] = {__shfl_sync(0xffffffffu, a[2 * half], 4 * g + from),
                                __shfl_sync(0xffffffffu, a[2 * half + 1], 4 * g + from)};
      const uint32_t columns[2] = {__shfl_sync(0xffffffffu, b[half], 8 * t + from),
                                   __shfl_sync(0xffffffffu, b[half], 8 * t + 4 + from)};
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const uint32_t row = rows[j / 2], column = columns[j % 2];
        c[j] = __fmaf_rn(lr_bf16_to_float((uint16_t)row), lr_bf16_to_float((uint16_t)column), c[j]);
        c[j] = __fmaf_rn(lr_bf16_to_float((uint16_t)(row >> 16)), lr_bf16_to_float((uint16_t)(column >> 16)), c[j]);
      }
    }
}

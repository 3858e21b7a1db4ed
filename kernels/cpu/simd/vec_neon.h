// The vocabulary of simd.h in NEON registers of four lanes, with the dot product of Armv8.2.
#pragma once
#include "simd/vec_aarch64.h"

namespace {

#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr MicroTile kMicroTiles[] = {{1, 1}, {2, 1}, {4, 1}};  // codes are ordered once for all tokens
#else
constexpr MicroTile kMicroTiles[] = {{1, 1}, {2, 1}};
#endif
const int kMaxProbabilityCode = 254, kProbabilityZero = 127;  // codes of weights, and what v_dot_probabilities takes less

LR_INLINE f32v v_min(f32v a, f32v b) { return vminq_f32(a, b); }
LR_INLINE f32v v_max(f32v a, f32v b) { return vmaxq_f32(a, b); }
LR_INLINE i32v v_max(i32v a, i32v b) { return vmaxq_s32(a, b); }
LR_INLINE i32v v_round(f32v v) { return vcvtnq_s32_f32(v); }

// The sum of the lanes by one fixed tree: i + (i + 2), then + 1.
LR_INLINE float v_reduce_sum(f32v v) {
  const float32x2_t c = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(c, 0) + vget_lane_f32(c, 1);
}
LR_INLINE float v_reduce_max(f32v v) { return vmaxvq_f32(v); }
LR_INLINE int32_t v_reduce_sum(i32v v) { return vaddvq_s32(v); }
LR_INLINE int32_t v_reduce_max(i32v v) { return vmaxvq_s32(v); }

LR_INLINE uint64_t load_four(const void* p) {
  uint32_t four;
  memcpy(&four, p, sizeof four);
  return four;
}
template <> LR_ALWAYS_INLINE i32v v_load_i8<i32v>(const void* p) {
  return vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(load_four(p)))));
}
template <> LR_ALWAYS_INLINE i32v v_load_u8<i32v>(const void* p) {
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(load_four(p))))));
}
// The bytes of a float by the bytes of its number.
LR_INLINE f32v v_pick(const float* table, i32v names) {
  const uint8x16x4_t bytes = vld1q_u8_x4((const uint8_t*)table);
  return vreinterpretq_f32_u8(vqtbl4q_u8(bytes, vreinterpretq_u8_s32(names * 0x04040404 + 0x03020100)));
}
LR_INLINE void v_store_i8(int8_t* p, i32v v) {
  const int16x4_t words = vqmovn_s32(v);
  const int32x2_t codes = vreinterpret_s32_s8(vqmovn_s16(vcombine_s16(words, words)));
  memcpy(p, &codes, 4);
}
LR_INLINE void v_store_u8(uint8_t* p, i32v v) {
  const uint16x4_t words = vqmovun_s32(v);
  const uint32x2_t codes = vreinterpret_u32_u8(vqmovn_u16(vcombine_u16(words, words)));
  memcpy(p, &codes, 4);
}

LR_INLINE u8v v_high4(u8v v) { return vshrq_n_u8(v, 4); }
template <> LR_ALWAYS_INLINE u8v v_table<u8v>(const int8_t* table) { return vreinterpretq_u8_s8(vld1q_s8(table)); }
LR_INLINE u8v v_lookup(u8v table, u8v codes) { return vqtbl1q_u8(table, codes); }
template <int by> LR_INLINE u8v v_join(u8v code, u8v high, uint8_t mask) {
  u8v moved = high;
  if constexpr (by > 0) moved = vshlq_n_u8(high, by);
  if constexpr (by < 0) moved = vshrq_n_u8(high, -by);
  return vorrq_u8(code, vandq_u8(moved, vdupq_n_u8(mask)));
}

LR_INLINE i32v v_dot_signed(i32v c, u8v codes, i8v x) { return vdotq_s32(c, vreinterpretq_s8_u8(codes), x); }
LR_INLINE i32v v_dot_unsigned(i32v c, u8v codes, i8v x) { return v_dot_signed(c, codes, x); }
LR_INLINE i32v v_dot_probabilities(i32v c, i8v weights, u8v codes) { return v_dot_signed(c, codes, weights); }
LR_INLINE i32v v_dot_probabilities_4bit(i32v c, i8v a, u8v codes_a, i8v b, u8v codes_b) {
  return v_dot_probabilities(v_dot_probabilities(c, a, codes_a), b, codes_b);
}

}  // namespace

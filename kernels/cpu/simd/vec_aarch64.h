// What every 64-bit Arm has in hardware, for the units of NEON and for the generic one.
#pragma once
#include "simd/vec.h"

namespace {

LR_INLINE f32v v_fma(f32v a, f32v b, f32v c) { return vfmaq_f32(c, a, b); }
LR_INLINE f64v v_fma(f64v a, f64v b, f64v c) { return vfmaq_f64(c, a, b); }
LR_INLINE f64v v_min(f64v a, f64v b) { return vminnmq_f64(a, b); }
LR_INLINE f64v v_max(f64v a, f64v b) { return vmaxnmq_f64(a, b); }
LR_INLINE f64v v_load_f64(const float* p) { return vcvt_f64_f32(vld1_f32(p)); }
LR_INLINE uint32_t v_lanes(i32v mask) { return (uint32_t)vaddvq_s32(mask & i32v{1, 2, 4, 8}); }

template <> LR_ALWAYS_INLINE f32v v_load_fp16<f32v>(const void* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t*)p)));
}
LR_INLINE void v_store_fp16(uint16_t* p, f32v v) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v))); }

}  // namespace

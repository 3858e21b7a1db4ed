// The vectors of the unit that is being compiled: sixteen lanes by the same names in every header. F is 16 float, I 16
// int32, B 64 bytes (16 rows of 4 codes), X 4 codes of an activation in every lane.
// Attention and the KV cache compute in vectors of the unit's own width instead, vf and vi of native_width.inc, so that their
// blocks of rows × vectors fill its registers.
#pragma once
#if defined(__AVX512F__)
#include "simd/vec_avx512.h"
#elif defined(__AVX2__)
#include "simd/vec_avx2.h"
#elif defined(__ARM_FEATURE_DOTPROD)
#include "simd/vec_neon.h"
#else
#include "simd/vec_generic.h"
#endif
#include "simd/vec_math.h"

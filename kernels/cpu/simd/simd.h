// The vectors of the unit that is being compiled: one vocabulary. Every instruction set implements it once, for one of its
// registers (vec.h, vec_*.h); vec_x16.h does the same with sixteen lanes.
//
//   f32v i32v u8v i8v      one register: VL lanes of 32 bits, 4 · VL bytes. Attention and rope compute blocks of rows ×
//                          registers by them
//   f32x16 i32x16 u8x64    sixteen lanes, in as many registers as they take: 16 rows of a weight, u8x64 four codes of each;
//                          and what walks along a row, where sums are to have one order on every instruction set. Where
//                          VL is 16 these are the types above.
//   f64v                   VL / 2 lanes of 64 bits, for sums of shares: + - v_set v_fma, v_min and v_max (never a NaN beside a
//                          number, if the number is the second), and v_load_f64(p) of VL / 2 floats
// V is any of them. p need not be aligned.
//
//   v_set<V>(x) v_iota()                 x in every lane; lane i is i
//   v_load<V>(p) v_store(p, v)
//   v_load_n<V>(p, n) v_store_n(p, v, n) the first n floats, other lanes zero; v_load_n_or<V>(p, n, other): those `other`
//   v_load_i8 v_load_u8 v_load_fp16 <V>(p), v_store_i8 v_store_u8 v_store_fp16 (p, v)  widening and narrowing; what is
//                                        stored fits
//   v_store_f8_as_fp16(p, codes)         2 · VL codes of FP8 (E4M3), widened to halves of a 2^8th of their numbers
//   v_pick(table, names)                 those of 16 floats that `names`, below 16, are the numbers of
//   + - * / & << >> > >=                 lane by lane, also with a number; > and >= make a mask
//   v_fma(a, b, c)                       a · b + c in one rounding, where the instruction set has it
//   v_min v_max (a, b)                   where one is a NaN the second is taken, or a NaN
//   v_select(mask, yes, no) v_lanes(mask)  lane by lane; bit i for lane i
//   v_bits(f) v_of_bits(i)               the same bits as the other type
//   v_to_f32(i) v_round(f)               to float, to the nearest integer (halves to even; |f| below 2^22)
//   v_reduce_sum(v) v_reduce_max(v)      of all lanes: sums by halves, i + (i + half), a fixed tree; no maximum of NaNs
//   v_swap<h>(f)                         lane i gets lane i ^ h
//   v_transpose(rows)                    of as many rows as a vector has lanes
//   v_exp v_sigmoid v_silu v_gelu v_gelu_erf v_tanh v_softcap, and for scores v_exp_fast v_softcap_fast: vec_math.h
//
// Codes of weights or keys (u8) times an i8v with the same four codes of an activation in every lane:
//   v_low4(codes) v_high4(codes)         the nibbles of bytes
//   v_join<by>(code, high, mask)         code | (high moved left by `by` bits, right where negative) & mask
//   v_table<V>(p) v_lookup(table, names) 16 signed codes, and those that `names` are the numbers of
//   v_signed(codes) v_take<n>(codes)     signed codes as v_dot_signed wants them: plus kSignedZero; codes minus n
//   v_set4(p)                            four codes in every lane
//   v_dot_signed(c, codes, x)            c + the sum of four products in each lane; codes of v_signed or v_table
//   v_dot_unsigned(c, codes, x)          codes of at most 127
//   CodeSum<most, zero, n, factored, V>  the same over n vectors of codes up to `most` (0: signed ones) of which `zero` stands
//                                        for 0, as few instructions as it takes: begin(c, factors), add(i, codes, p) of the i-th vector and v_set4(p),
//                                        total(). `factored`: every FACTOR_VECTORS of them have a word of two factors, one
//                                        for the first two codes of a lane and one for the others, of 1 to 15; AVX2 has it
//   v_pair_sums(codes, zero)             what such a sum begins with instead of c where starts_with_pairs(most, zero): AVX2
//   WidenedSum                           the same of codes and activations of 16 bits, two a lane (v_first_third,
//                                        v_second_fourth, v_store_widened), whose factors are in the activations. Where
//                                        LR_HAS_WIDENED_SUM: AVX2, whose other codes are multiplied as bytes, and generic
//   WideCodeSum<most, zero, n>           the same of sixteen lanes and two bytes a code, the low one 32 bytes behind the other
//   v_dot_probabilities(c, x, codes)     x up to kMaxProbabilityCode, less kProbabilityZero, and signed codes as they are
//   v_dot_probabilities_4bit(c, x, codes, y, more)  of two vectors, codes of at most 15
// With LR_HAS_DOT_I16 (AVX2) also v_dot_i16(c, a, b), c + the sum of two products of 16 bits in each lane, and v_store_i16(p, v).
// With LR_HAS_BF16 also bf16v, v_set2, v_dot_bf16, v_to_bf16, v_store_bf16 and v_store_bf16_n. Matrix units have words of
// their own: amx.inc, i8mm.inc.
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
#ifndef LR_HAS_BF16
#define LR_HAS_BF16 0
#endif
#ifndef LR_HAS_WIDENED_SUM
#define LR_HAS_WIDENED_SUM 0
#endif
#ifndef LR_HAS_DOT_I16
#define LR_HAS_DOT_I16 0
#endif
#include "simd/vec_x16.h"
#include "simd/vec_math.h"

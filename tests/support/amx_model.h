// The tile instructions that kernels/cpu/simd/amx.inc uses, in software: a processor without AMX then runs the amx unit, with
// its tiling, scratch and bookkeeping. It is as strict as the processor: what faults there ends the process here.
//
// As the manual has it, and a processor (test_amx_model.py compares the two): shapes and what they must have in common; rows
// and bytes beyond a shape are zero; bf16 products summed by fused multiply-add, even and odd members of the pairs apart,
// from zero and in ascending order, then both sums added and their sum added to the register, rounding to nearest even and
// with subnormals in and out taken as zero. Not modelled: which of several NaNs is kept, start_row (no load is ever
// interrupted), speed, and that the system must have been asked for the registers.
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace {

struct AmxModel {
  enum { REGISTERS = 8, ROWS = 16, BYTES = 64 };
  struct Register {
    int rows, bytes;
    alignas(64) uint8_t data[ROWS][BYTES];
  } reg[REGISTERS];
  bool configured;

  static void must(bool holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "AMX model: %s\n", what);
    abort();
  }

  void configure(const void* memory) {
    uint8_t bytes[64];
    memcpy(bytes, memory, sizeof bytes);
    must(bytes[0] <= 1, "no such palette");
    memset(this, 0, sizeof *this);
    if (bytes[0] == 0) return;
    must(bytes[1] == 0, "start_row is for interrupted loads");
    for (int i = 0; i < 64; i++)
      must((i >= 2 && i < 16) || (i >= 32 && i < 48) || i >= 56 ? bytes[i] == 0 : true, "reserved bytes are not zero");
    for (int i = 0; i < REGISTERS; i++) {
      reg[i].rows = bytes[48 + i];
      reg[i].bytes = bytes[16 + 2 * i] | bytes[17 + 2 * i] << 8;
      must(reg[i].rows <= ROWS && reg[i].bytes <= BYTES, "more than a register holds");
      must((reg[i].rows == 0) == (reg[i].bytes == 0), "rows without bytes or bytes without rows");
    }
    configured = true;
  }

  Register& use(int i) {
    must(configured, "registers are used before they have shapes");
    must(reg[i].rows > 0, "a register without a shape is used");
    return reg[i];
  }

  void zero(int i) {
    Register& r = use(i);
    memset(r.data, 0, sizeof r.data);
  }

  void load(int i, const void* from, int64_t stride) {
    Register& r = use(i);
    memset(r.data, 0, sizeof r.data);
    for (int row = 0; row < r.rows; row++) memcpy(r.data[row], (const char*)from + row * stride, (size_t)r.bytes);
  }

  void store(int i, void* to, int64_t stride) {
    const Register& r = use(i);
    for (int row = 0; row < r.rows; row++) memcpy((char*)to + row * stride, r.data[row], (size_t)r.bytes);
  }

  // c += a · b, groups of four bytes of a row of `a` with those of a column of `b`.
  void must_match(int c, int a, int b) {
    const Register &x = use(a), &y = use(b), &sum = use(c);
    must(c != a && c != b && a != b, "a register stands twice in a product");
    must(sum.bytes % 4 == 0 && x.bytes % 4 == 0 && y.bytes % 4 == 0, "rows are not of whole groups");
    must(sum.rows == x.rows && x.bytes / 4 == y.rows && sum.bytes == y.bytes, "shapes do not fit each other");
  }

  // The bf16 of four bytes that lies lower, and the one that lies higher, as floats.
  static __m256 low(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
  static __m256 high(__m256i pairs) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int32_t)0xffff0000)));
  }

  __attribute__((noinline)) void sum_bf16(int c, int a, int b) {
    const Register &x = reg[a], &y = reg[b];
    for (int m = 0; m < x.rows; m++)
      for (int half = 0; half < 64; half += 32) {
        __m256 even = _mm256_setzero_ps(), odd = even;
        for (int k = 0; k < y.rows; k++) {
          int32_t pair;
          memcpy(&pair, x.data[m] + 4 * k, 4);
          const __m256i one = _mm256_set1_epi32(pair), column = _mm256_load_si256((const __m256i*)(y.data[k] + half));
          even = _mm256_fmadd_ps(low(one), low(column), even);
          odd = _mm256_fmadd_ps(high(one), high(column), odd);
        }
        float* sum = (float*)(reg[c].data[m] + half);
        _mm256_store_ps(sum, _mm256_add_ps(_mm256_load_ps(sum), _mm256_add_ps(even, odd)));
      }
  }

  void dot_bf16(int c, int a, int b) {
    must_match(c, a, b);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x1f80 | _MM_FLUSH_ZERO_ON | 0x40);  // to nearest, no traps, subnormals are zero
    sum_bf16(c, a, b);
    _mm_setcsr(before);
  }
};

thread_local AmxModel amx_model;

inline void amx_configure(const AmxTileConfig& shapes) { amx_model.configure(&shapes); }
inline void amx_release() { amx_model.configured = false; }
template <int reg> void amx_zero() { amx_model.zero(reg); }
template <int reg> void amx_load(const void* from, int64_t stride) { amx_model.load(reg, from, stride); }
template <int reg> void amx_store(void* to, int64_t stride) { amx_model.store(reg, to, stride); }
template <int c, int a, int b> void amx_dot_bf16() { amx_model.dot_bf16(c, a, b); }

}  // namespace

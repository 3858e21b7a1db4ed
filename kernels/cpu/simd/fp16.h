// The bits of a float, and IEEE fp16_scales without instructions for them.
#pragma once
#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float bits_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline float fp16_to_float(const void* p) {
  uint16_t h;
  memcpy(&h, p, 2);
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  uint32_t bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000 | fraction << 13;
  } else if (exponent) {
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  } else {  // fraction · 2^-24, exact in float
    bits = float_bits((float)fraction * 5.9604644775390625e-8f) | sign;
  }
  return bits_float(bits);
}

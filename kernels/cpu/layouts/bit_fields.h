// Fields of a few bits within bytes.
#pragma once
#include <stdint.h>
#include <string.h>

// Of every `run` bytes, first all lowest fields of `bits` bits, then all next ones, and so on.
template <int bits, int run> static inline void unpack_fields(const uint8_t* raw, int n_bytes, uint8_t* out) {
  for (int base = 0; base < n_bytes; base += run)
    for (int shift = 0; shift < 8; shift += bits)
      for (int i = 0; i < run; i++) *out++ = (uint8_t)(raw[base + i] >> shift & ((1 << bits) - 1));
}

static inline uint16_t u16_at(const uint8_t* raw) {
  uint16_t word;
  memcpy(&word, raw, 2);
  return word;
}

static inline uint32_t u32_at(const uint8_t* raw) {
  uint32_t word;
  memcpy(&word, raw, 4);
  return word;
}

// The grid types (IQ1 to IQ3): a code names a group of 4 or 8 magnitudes; signs and scales come beside it.
#include "layouts/bit_fields.h"
#include "simd/fp16.h"
#include "layouts/layouts.h"
#include "layouts/unpack_blocks.h"

#include <atomic>

namespace {

// The vectors of one grid, known once `set` is true.
struct Grid {
  int32_t gguf_type, dims, n_codes;
  std::atomic<bool> set;
  int8_t values[2048 * 8];
};

Grid kGrid1{19, 8, 2048, {false}, {}}, kGrid2xxs{16, 8, 256, {false}, {}}, kGrid2xs{17, 8, 512, {false}, {}},
    kGrid2s{22, 8, 1024, {false}, {}}, kGrid3xxs{18, 4, 256, {false}, {}}, kGrid3s{21, 4, 512, {false}, {}};

Grid* grid_of(int32_t gguf_type) {
  if (gguf_type == 29) return &kGrid1;  // IQ1_M uses the grid of IQ1_S
  Grid* const grids[] = {&kGrid1, &kGrid2xxs, &kGrid2xs, &kGrid2s, &kGrid3xxs, &kGrid3s};
  for (Grid* grid : grids)
    if (grid->gguf_type == gguf_type) return grid;
  return nullptr;
}

// Seven sign bits name eight signs: the eighth makes the number of minuses even.
uint8_t even_signs(uint32_t seven) { return (uint8_t)(seven | (uint32_t)(__builtin_popcount(seven) & 1) << 7); }

// n magnitudes with their signs, bit 1 for minus.
void put_signed(const int8_t* magnitudes, int n, uint32_t signs, uint8_t* out) {
  for (int i = 0; i < n; i++) out[i] = (uint8_t)(signs >> i & 1 ? -magnitudes[i] : magnitudes[i]);
}

uint8_t odd(uint32_t n) { return (uint8_t)(2 * n + 1); }

}  // namespace

bool has_grid(int32_t gguf_type) {
  const Grid* grid = grid_of(gguf_type);
  return !grid || grid->set.load(std::memory_order_acquire);
}

int lr_set_grid(int32_t gguf_type, const int8_t* values, int64_t n) {
  Grid* grid = grid_of(gguf_type);
  if (!grid || !values || n != (int64_t)grid->dims * grid->n_codes) return LR_BAD_ARGUMENT;
  if (grid->set.load(std::memory_order_acquire)) return LR_OK;  // there is only one, and somebody may be reading it
  memcpy(grid->values, values, (size_t)n);
  grid->set.store(true, std::memory_order_release);
  return LR_OK;
}

void unpack_iq2_xxs(const uint8_t* raw, Block* b) {
  b->super = fp16_to_float(raw) * 0.125f;
  for (int g = 0; g < 8; g++) {
    const uint8_t* at = raw + 2 + 8 * g;
    const uint32_t word = u32_at(at + 4);
    b->scale[2 * g] = b->scale[2 * g + 1] = odd(word >> 28);
    for (int i = 0; i < 4; i++)
      put_signed(kGrid2xxs.values + 8 * at[i], 8, even_signs(word >> (7 * i) & 127), b->code + 32 * g + 8 * i);
  }
}

void unpack_iq2_xs(const uint8_t* raw, Block* b) {
  b->super = fp16_to_float(raw) * 0.125f;
  for (int i = 0; i < 32; i++) {
    const uint32_t word = u16_at(raw + 2 + 2 * i);
    put_signed(kGrid2xs.values + 8 * (word & 511), 8, even_signs(word >> 9), b->code + 8 * i);
  }
  for (int i = 0; i < 16; i++) b->scale[i] = odd(raw[66 + i / 2] >> (i % 2 * 4) & 15);
}

void unpack_iq2_s(const uint8_t* raw, Block* b) {
  b->super = fp16_to_float(raw) * 0.125f;
  for (int i = 0; i < 32; i++) {
    const int code = raw[2 + i] | (raw[66 + i / 4] >> (i % 4 * 2) & 3) << 8;
    put_signed(kGrid2s.values + 8 * code, 8, raw[34 + i], b->code + 8 * i);
  }
  for (int i = 0; i < 16; i++) b->scale[i] = odd(raw[74 + i / 2] >> (i % 2 * 4) & 15);
}

void unpack_iq3_xxs(const uint8_t* raw, Block* b) {
  b->super = fp16_to_float(raw) * 0.25f;
  for (int g = 0; g < 8; g++) {
    const uint32_t word = u32_at(raw + 66 + 4 * g);
    b->scale[2 * g] = b->scale[2 * g + 1] = odd(word >> 28);
    for (int i = 0; i < 8; i++) {
      const uint32_t signs = even_signs(word >> (7 * (i / 2)) & 127) >> (i % 2 * 4);
      put_signed(kGrid3xxs.values + 4 * raw[2 + 8 * g + i], 4, signs, b->code + 32 * g + 4 * i);
    }
  }
}

void unpack_iq3_s(const uint8_t* raw, Block* b) {
  b->super = fp16_to_float(raw);
  for (int i = 0; i < 64; i++) {
    const int code = raw[2 + i] | (raw[66 + i / 8] >> (i % 8) & 1) << 8;
    put_signed(kGrid3s.values + 4 * code, 4, (uint32_t)raw[74 + i / 2] >> (i % 2 * 4), b->code + 4 * i);
  }
  for (int i = 0; i < 16; i++) b->scale[i] = odd(raw[106 + i / 4] >> (i / 2 % 2 * 4) & 15);
}

// Eight ternary numbers shifted by ±1/8, in eighths.
static void put_shifted(int code, bool down, uint8_t* out) {
  for (int i = 0; i < 8; i++) out[i] = (uint8_t)(8 * kGrid1.values[8 * code + i] + (down ? -1 : 1));
}

void unpack_iq1_s(const uint8_t* raw, Block* b) {
  b->super = fp16_to_float(raw) * 0.125f;
  for (int g = 0; g < 8; g++) {
    const uint32_t word = u16_at(raw + 34 + 2 * g);
    b->scale[2 * g] = b->scale[2 * g + 1] = odd(word >> 12 & 7);
    for (int i = 0; i < 4; i++) {
      const int code = raw[2 + 4 * g + i] | (int)(word >> (3 * i) & 7) << 8;
      put_shifted(code, word >> 15, b->code + 32 * g + 8 * i);
    }
  }
}

void unpack_iq1_m(const uint8_t* raw, Block* b) {
  uint16_t fp16_scale = 0;  // the top nibbles of the four scale words
  for (int i = 0; i < 4; i++) fp16_scale |= (uint16_t)(u16_at(raw + 48 + 2 * i) >> 12 << (4 * i));
  b->super = fp16_to_float(&fp16_scale) * 0.125f;
  for (int i = 0; i < 16; i++) b->scale[i] = odd(u16_at(raw + 48 + i / 4 * 2) >> (i % 4 * 3) & 7);
  for (int i = 0; i < 32; i++) {
    const int nibble = raw[32 + i / 2] >> (i % 2 * 4) & 15;
    put_shifted(raw[i] | (nibble & 7) << 8, nibble >> 3, b->code + 8 * i);
  }
}

// Keys and values as they are stored: KEY_BITS and VALUE_BITS are 32 (float), 16 (half), 8 (signed codes and a half as scale
// for 128 dims) or 4 (codes, a scale and an offset; byte j has dims j and DIM / 2 + j). ROTATES: all of them, and the queries,
// are turned by a Hadamard matrix. What is coded is also there in halves, in the blocks of a ring: a query reads these of its
// own block and of block 0.
#pragma once
#include "numbers.metal"
#define KEYS 64  // of a block
#define SCALE_DIMS 128
#define LR_ROW_BYTES(bits) (DIM * (bits) / 8)
#define LR_N_SCALES(bits) ((bits) >= 16 ? 0 : (DIM + SCALE_DIMS - 1) / SCALE_DIMS * ((bits) == 4 ? 2 : 1))
#define LR_IS_CODED(bits) ((bits) < 16)
#define HAS_RING (LR_IS_CODED(KEY_BITS) || LR_IS_CODED(VALUE_BITS))

// The keys or values of one KV head in one block; key k is k strides further.
struct lr_cells {
  device const uchar* cells;
  device const half* scales;
  int stride, scale_stride;
};
// planes: [blocks][n_layers][64][n_kv_heads][...], this layer's at `index`.
LR_INLINE lr_cells lr_cells_of(device const uchar* cells, device const half* scales, int bits, int block, int n_layers,
                               int index, int n_kv_heads, int kv_head) {
  const int stride = n_kv_heads * LR_ROW_BYTES(bits), scale_stride = n_kv_heads * LR_N_SCALES(bits);
  const long first = (long(block) * n_layers + index) * KEYS;
  return {cells + first * stride + kv_head * LR_ROW_BYTES(bits), scales + first * scale_stride + kv_head * LR_N_SCALES(bits),
          stride, scale_stride};
}

LR_INLINE float lr_side(device const half* scales, int dim) { return float(scales[dim / SCALE_DIMS]); }
// Four neighbouring dims of key k, from a multiple of four on.
template <int BITS> LR_INLINE float4 lr_four_cells(thread const lr_cells& of, int k, int dim) {
  device const uchar* const row = of.cells + long(k) * of.stride;
  device const half* const scales = of.scales + long(k) * of.scale_stride;
  if (BITS == 32) return *(device const float4*)(row + 4 * dim);
  if (BITS == 16) {
    const uint2 v = *(device const uint2*)(row + 2 * dim);
    return float4(lr_low_half(v.x), lr_high_half(v.x), lr_low_half(v.y), lr_high_half(v.y));
  }
  if (BITS == 8) {
    const char4 v = *(device const char4*)(row + dim);
    const float scale = lr_side(scales, dim);
    return float4(float(v.x) * scale, float(v.y) * scale, float(v.z) * scale, float(v.w) * scale);
  }
  const uint v = *(device const uint*)(row + dim % (DIM / 2)) >> (dim < DIM / 2 ? 0 : 4);
  const float scale = lr_side(scales, dim), offset = lr_side(scales + LR_N_SCALES(4) / 2, dim);
  return float4(fma(float(int(v & 15u) - 8), scale, offset), fma(float(int(v >> 8 & 15u) - 8), scale, offset),
                fma(float(int(v >> 16 & 15u) - 8), scale, offset), fma(float(int(v >> 24 & 15u) - 8), scale, offset));
}
// Two neighbouring dims, from an even one on.
template <int BITS> LR_INLINE float2 lr_two_cells(thread const lr_cells& of, int k, int dim) {
  device const uchar* const row = of.cells + long(k) * of.stride;
  device const half* const scales = of.scales + long(k) * of.scale_stride;
  if (BITS == 32) return *(device const float2*)(row + 4 * dim);
  if (BITS == 16) {
    const uint v = *(device const uint*)(row + 2 * dim);
    return float2(lr_low_half(v), lr_high_half(v));
  }
  if (BITS == 8) {
    const char2 v = *(device const char2*)(row + dim);
    const float scale = lr_side(scales, dim);
    return float2(float(v.x) * scale, float(v.y) * scale);
  }
  const uint v = uint(*(device const ushort*)(row + dim % (DIM / 2))) >> (dim < DIM / 2 ? 0 : 4);
  const float scale = lr_side(scales, dim), offset = lr_side(scales + LR_N_SCALES(4) / 2, dim);
  return float2(fma(float(int(v & 15u) - 8), scale, offset), fma(float(int(v >> 8 & 15u) - 8), scale, offset));
}

// Blocks of keys and values as the rest of the program sees them: sizes, and plain values in and out.
#include "runtime/check.h"

#include <string.h>

namespace {

const lr_kv_layout* layout_of(int32_t codec, int32_t n_kv_heads, int32_t head_dim) {
  if (codec < 0 || codec >= LR_N_KV || n_kv_heads < 1 || n_kv_heads > LR_MAX_HEADS) return nullptr;
  if (head_dim < 8 || head_dim > LR_MAX_HEAD_DIM || head_dim % 8) return nullptr;
  return lr_current_kernels()->kv[codec];
}

const lr_latent_layout* latents_of(int32_t codec, int32_t key_dim, int32_t value_dim) {
  if (codec < 0 || codec >= LR_N_LATENTS || !good_latent(key_dim, value_dim)) return nullptr;
  return lr_current_kernels()->latents[codec];
}

bool in_block(int32_t slot, int32_t n) { return slot >= 0 && n >= 0 && slot <= LR_BLOCK_TOKENS - n; }

}  // namespace

int64_t lr_kv_block_bytes(int32_t codec, int32_t n_kv_heads, int32_t head_dim) {
  const lr_kv_layout* layout = layout_of(codec, n_kv_heads, head_dim);
  return layout ? n_kv_heads * layout->head_bytes(head_dim) : -1;
}

int lr_kv_import(int32_t codec, int32_t n_kv_heads, int32_t head_dim, void* block, int32_t slot, int32_t n, const float* k,
                 const float* v) {
  const lr_kv_layout* layout = layout_of(codec, n_kv_heads, head_dim);
  if (!layout || !block || !k || !v || !in_block(slot, n)) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < n * n_kv_heads; i++) {
    void* head = (char*)block + i % n_kv_heads * layout->head_bytes(head_dim);
    layout->put(head, head_dim, slot + i / n_kv_heads, k + (int64_t)i * head_dim, v + (int64_t)i * head_dim);
  }
  return LR_OK;
}

int lr_kv_export(int32_t codec, int32_t n_kv_heads, int32_t head_dim, const void* block, int32_t slot, int32_t n, float* k,
                 float* v) {
  const lr_kv_layout* layout = layout_of(codec, n_kv_heads, head_dim);
  if (!layout || !block || !k || !v || !in_block(slot, n)) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < n * n_kv_heads; i++) {
    const void* head = (const char*)block + i % n_kv_heads * layout->head_bytes(head_dim);
    layout->get(head, head_dim, slot + i / n_kv_heads, k + (int64_t)i * head_dim, v + (int64_t)i * head_dim);
  }
  return LR_OK;
}

int lr_kv_import_codes(int32_t codec, int32_t n_kv_heads, int32_t head_dim, void* block, int32_t slot, int32_t n,
                       const lr_kv_codes* k, const lr_kv_codes* v) {
  const lr_kv_layout* layout = layout_of(codec, n_kv_heads, head_dim);
  if (!layout || !layout->put_codes || !block || !k || !v || !in_block(slot, n)) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < n * n_kv_heads; i++) {
    void* head = (char*)block + i % n_kv_heads * layout->head_bytes(head_dim);
    layout->put_codes(head, head_dim, slot + i / n_kv_heads, k + i, v + i);
  }
  return LR_OK;
}

int lr_kv_export_codes(int32_t codec, int32_t n_kv_heads, int32_t head_dim, const void* block, int32_t slot, int32_t n,
                       lr_kv_codes* k, lr_kv_codes* v) {
  const lr_kv_layout* layout = layout_of(codec, n_kv_heads, head_dim);
  if (!layout || !layout->get_codes || !block || !k || !v || !in_block(slot, n)) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < n * n_kv_heads; i++) {
    const void* head = (const char*)block + i % n_kv_heads * layout->head_bytes(head_dim);
    layout->get_codes(head, head_dim, slot + i / n_kv_heads, k + i, v + i);
  }
  return LR_OK;
}

int64_t lr_latent_block_bytes(int32_t codec, int32_t key_dim, int32_t value_dim) {
  const lr_latent_layout* layout = latents_of(codec, key_dim, value_dim);
  return layout ? layout->bytes(key_dim) : -1;
}

int lr_latent_import(int32_t codec, int32_t key_dim, int32_t value_dim, void* block, int32_t slot, int32_t n,
                     const float* keys) {
  const lr_latent_layout* layout = latents_of(codec, key_dim, value_dim);
  if (!layout || !block || !keys || !in_block(slot, n)) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < n; i++) layout->put(block, key_dim, value_dim, slot + i, keys + (int64_t)i * key_dim);
  return LR_OK;
}

int lr_latent_export(int32_t codec, int32_t key_dim, int32_t value_dim, const void* block, int32_t slot, int32_t n,
                     float* keys) {
  const lr_latent_layout* layout = latents_of(codec, key_dim, value_dim);
  if (!layout || !block || !keys || !in_block(slot, n)) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < n; i++) layout->get(block, key_dim, value_dim, slot + i, keys + (int64_t)i * key_dim);
  return LR_OK;
}

int lr_kv_copy_block(void* pool, int64_t block_bytes, int32_t from, int32_t to) {
  if (!pool || block_bytes < 1 || from < 0 || to < 0) return LR_BAD_ARGUMENT;
  if (from != to) memcpy((char*)pool + to * block_bytes, (const char*)pool + from * block_bytes, (size_t)block_bytes);
  return LR_OK;
}

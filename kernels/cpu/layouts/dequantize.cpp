// Sizes, names, and dequantizing rows of a layout exactly.
#include "layouts/scalar_access.h"
#include "isa.h"

#include <string.h>

// Longer rows would not fit a task's scratch: six tokens, gate and up.
static const int32_t MAX_COLUMNS = 61440;

const char* lr_layout_name(int32_t layout) { return layout >= 0 && layout < LR_N_LAYOUTS ? lr_layouts[layout].name : ""; }

static bool has_amx() { return !strcmp(lr_current_kernels()->isa, "amx"); }

// On Intel's cores a bf16 dot product of vectors is two slow steps: half the rate of float32, and less exact.
static bool bf16_is_fast() {
  if (has_amx()) return true;
#if defined(__x86_64__) || defined(_M_X64)
  __builtin_cpu_init();
  static const bool fast = !__builtin_cpu_is("intel");
  return fast;
#else
  return true;
#endif
}

int32_t lr_layout_activation_format(int32_t layout) {
  if (layout < 0 || layout >= LR_N_LAYOUTS) return 0;
  if (lr_is_widened(lr_layouts[layout])) return has_amx() ? lr_current_kernels()->bf16_format : 0;
  if (lr_layouts[layout].code_bits == LR_CODE_BITS_BF16) return bf16_is_fast() ? lr_current_kernels()->bf16_format : 0;
  return lr_has_codes(lr_layouts[layout]) ? lr_current_kernels()->code_format : 0;
}

int64_t lr_packed_bytes(int32_t layout, int32_t n_rows, int32_t n_cols) {
  if (layout < 0 || layout >= LR_N_LAYOUTS || n_rows < 1 || n_cols < 1 || n_cols > MAX_COLUMNS) return -1;
  const lr_block_parts parts = lr_parts(lr_layouts[layout]);
  const int32_t group = lr_layouts[layout].group, whole = parts.super_scales ? 256 : group > 32 ? group : 32;
  if (lr_layouts[layout].scale != LR_SCALE_NONE && n_cols % whole) return -1;
  return ((int64_t)n_rows + 15) / 16 * lr_group_bytes(parts, n_cols);
}

int lr_dequantize_row(const lr_matrix* m, int32_t row, float* out) {
  if (!m || !out || row < 0 || row >= m->n_rows || lr_packed_bytes(m->layout, m->n_rows, m->n_cols) != m->n_bytes)
    return LR_BAD_ARGUMENT;
  const lr_layout& layout = lr_layouts[m->layout];
  const lr_block_parts parts = lr_parts(layout);
  const bool adds_minimum = lr_has_minima(layout) && !lr_has_zeros(layout);
  const int lane = row % 16;
  for (int32_t first = 0; first < m->n_cols; first += 32) {
    const Run run = find_run(m, parts, row, first / 32);
    const int n = m->n_cols - first < 32 ? m->n_cols - first : 32;
    float scale, minimum;
    if (!lr_has_codes(layout)) {
      const bool scaled = layout.scale != LR_SCALE_NONE;
      if (scaled) scales_at(layout, run, lane, 0, &scale, &minimum);
      for (int i = 0; i < n; i++) {
        const float value = unpack_float(layout, run, lane, i);
        out[first + i] = scaled ? value * scale : value;
      }
      continue;
    }
    for (int g = 0; g < lr_run_groups(layout); g++) {
      scales_at(layout, run, lane, g, &scale, &minimum);
      const int zero = zero_at(layout, run, lane, g);
      for (int i = g * lr_run_columns(layout); i < (g + 1) * lr_run_columns(layout); i++) {
        const float value = scale * (float)(code_at(layout, run, lane, i) - zero);
        out[first + i] = adds_minimum ? value + minimum : value;
      }
    }
  }
  return LR_OK;
}

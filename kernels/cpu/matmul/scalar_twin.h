// What quantized_microkernel.inc and slices.inc compute, in plain C++ and to the same bits: one row of a quantized weight
// times one token. Read it first; tests hold the fast ones to it. What outliers have beyond a byte comes after all other codes.
#pragma once
#include <math.h>
#include <string.h>

#include "layouts/scalar_access.h"
#include "matmul/arithmetic.h"

// `fused`: whether the unit has a fused multiply-add, which rounds once.
template <class Arithmetic>
static float quantized_dot(const lr_matrix* w, int32_t row, const lr_value* a, int32_t token, bool fused) {
  const lr_layout& layout = lr_layouts[w->layout];
  const auto multiply_add = [&](float x, float y, float sum) { return fused ? fmaf(x, y, sum) : x * y + sum; };
  const int8_t* x_row = a->q8 + (int64_t)token * a->stride * Arithmetic::column_bytes;
  const int32_t columns = lr_run_columns(layout);
  float sum = 0.0f;
  const auto add_group = [&](int32_t column, const auto& integer) {  // columns that share a scale, each with its integer
    const Run run = find_run(w, lr_parts(layout), row, column / 32);
    const float word = a->q8_scale[((int64_t)token * a->stride + column) / 32], x_scale = Arithmetic::scale(word);
    float scale, minimum;
    scales_at(layout, run, row % 16, column % 32 / columns, &scale, &minimum);
    int32_t dot = 0, x_sum = 0;  // exact
    for (int i = 0; i < columns; i++) {
      const int32_t value = integer(column % 32 + i, word);
      dot += (code_at(layout, run, row % 16, column % 32 + i) - layout.zero) * value;
      x_sum += value;
    }
    sum = multiply_add((float)dot, scale * x_scale, sum);
    if (lr_has_minima(layout)) sum = multiply_add(minimum, x_scale * (float)x_sum, sum);
  };
  for (int32_t column = 0; column < w->n_cols; column += columns)
    add_group(column, [&](int i, float word) {
      return Arithmetic::code(x_row + column / 32 * 32 * Arithmetic::code_bytes, i) * Arithmetic::factor(word, i);
    });
  const RowOutliers* outliers = (const RowOutliers*)(x_row + a->stride);
  for (int32_t i = 0; Arithmetic::outliers && i < outliers->n; i++) {
    const Outlier& outlier = outliers->of[i];
    const int32_t word = outlier.column % 32 / 4;
    add_group(outlier.column / columns * columns,
              [&](int column, float) { return column / 4 == word ? 256 * outlier.high[column % 4] : 0; });
  }
  return sum;
}

typedef float (*ScalarTwin)(const lr_matrix* w, int32_t row, const lr_value* a, int32_t token, bool fused);

// That of a unit's arithmetic, by its name; null: there is none.
static inline ScalarTwin scalar_twin(const char* arithmetic) {
  if (strcmp(arithmetic, Int8::name) == 0) return quantized_dot<Int8>;
  if (strcmp(arithmetic, Int16::name) == 0) return quantized_dot<Int16>;
  if (strcmp(arithmetic, OutlierInt8::name) == 0) return quantized_dot<OutlierInt8>;
  return strcmp(arithmetic, FactoredInt8::name) == 0 ? quantized_dot<FactoredInt8> : nullptr;
}

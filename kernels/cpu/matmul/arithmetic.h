// The arithmetics of quantized linears. Each is a type that says what is kept of rounded activations; quantize_activations.inc
// has its rounding, as round_group(Arithmetic, …), and scalar_twin.h what is computed with it, as quantized_dot<Arithmetic>.
// The file of every unit, isa_*.cpp, names the one it has: LR_UNIT_ARITHMETIC.
#pragma once
#include <stdint.h>

#include "program.h"
#include "simd/fp16.h"

namespace {

// int8 in groups of 32 columns: a value is scale · code.
struct Int8 {
  static constexpr const char* name = "int8/32";
  static constexpr int32_t format = LR_FORMAT_Q8;
  static constexpr int code_bytes = 1, most = 127;
  static constexpr int column_bytes = 1;  // of a row of lr_value.q8
  static constexpr bool factored = false, outliers = false;
  // The code of a column of a group.
  static int32_t code(const int8_t* group, int column) { return group[column]; }
  // Of the word of a group (lr_value.q8_scale): what the code of a column counts for as an integer, and its scale.
  static int32_t factor(float, int) { return 1; }
  static float scale(float word) { return word; }
};

// Where codes of 8 columns share a factor of 1 to 15, too: a value is scale · factor · code. The upper half of the word is the
// scale, in bf16; the lower half four factors, lowest first: of the first 16 columns those with an even number of pairs before
// them (0, 1, 4, 5, …) and the others (2, 3, 6, 7, …), then likewise of the last 16.
struct FactoredInt8 : Int8 {
  static constexpr const char* name = "int8:8/32";
  static constexpr bool factored = true;
  static int32_t factor(float word, int column) { return float_bits(word) >> (column / 16 * 8 + column % 4 / 2 * 4) & 15; }
  static float scale(float word) { return bits_float(float_bits(word) & 0xffff0000); }
};

// int16: as Int8, but for codes of two bytes that are both signed. The high ones of a group lie before the low ones, so that
// each are multiplied as those of Int8 are.
struct Int16 : Int8 {
  static constexpr const char* name = "int16/32";
  static constexpr int32_t format = LR_FORMAT_Q16;
  static constexpr int code_bytes = 2, most = 127 * 256 + 127, column_bytes = 2;
  static int32_t code(const int8_t* group, int column) { return group[column] * 256 + group[32 + column]; }
};

// Int8, but four neighbours that stand out from their group, a word of codes, may have 16 bits: so the others decide how finely
// all are rounded. Their low bytes lie among the codes; the high ones behind all codes of the row, as RowOutliers.
struct OutlierInt8 : Int8 {
  static constexpr const char* name = "int8+4/32";
  static constexpr int32_t format = LR_FORMAT_Q16;
  static constexpr int column_bytes = 2, most_of_outlier = Int16::most;
  static constexpr bool outliers = true;
};
struct Outlier {
  int8_t high[4];
  uint32_t column;  // of the first
};
// At most one of each group, in the order of the columns.
struct RowOutliers {
  int32_t n;
  Outlier of[1];  // n
};

}  // namespace

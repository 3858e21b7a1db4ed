// The arithmetics of quantized linears. Each is a type that says what is kept of rounded activations; quantize_activations.inc
// has its rounding, as round_group(Arithmetic, …), and scalar_twin.h what is computed with it, as quantized_dot<Arithmetic>.
// The file of every unit, isa_*.cpp, names the one it has: LR_UNIT_ARITHMETIC.
#pragma once
#include <stdint.h>

namespace {

// int8 in groups of 32 columns: a value is scale · code.
struct Int8 {
  static constexpr const char* name = "int8/32";
  // Of the word of a group (lr_value.q8_scale): what a code counts for as an integer, and its scale.
  static int32_t factor(float, int) { return 1; }
  static float scale(float word) { return word; }
};

}  // namespace

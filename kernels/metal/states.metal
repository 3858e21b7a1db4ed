// States of recurrent layers, f32: a block has one state of every layer of a group. Sequence s of a step goes on from the
// state in block before[s] (-1: zeros); a row leaves one in block after[row] (-1: nobody wants it), which of the last row may
// be the same. Its rows are n_rows[s] from first_row[s] on.
#pragma once
#include "numbers.metal"

// The state in a block, from number `at` on.
LR_INLINE device float* lr_state(device float* numbers, int block, int block_numbers, long at) {
  return numbers + long(block) * block_numbers + at;
}

LR_INLINE float lr_silu(float x) { return x * lr_sigmoid(x); }
// log(1 + e^x). What 1 + e loses of a small e is in the quotient.
LR_INLINE float lr_softplus(float x) {
  const float e = lr_exp(-fabs(x)), sum = 1.f + e;
  return fmax(x, 0.f) + (sum == 1.f ? e : log(sum) * (e / (sum - 1.f)));
}

// States of recurrent layers, f32: a block has one state of every layer of a group. Sequence s of a step goes on from the
// state in block before[s] (-1: zeros); a row leaves one in block after[row] (-1: nobody wants it), which of the last row may
// be the same. Its rows are n_rows[s] from first_row[s] on.
#pragma once
#include "numbers.cuh"

struct States {
  float* numbers;      // [blocks][block_numbers]
  int block_numbers;
  int64_t at;          // the first number that is meant, within a block

  __device__ const float* before(int block) const { return block < 0 ? nullptr : place(block); }
  __device__ float* place(int block) const { return numbers + (int64_t)block * block_numbers + at; }
};

LR_INLINE float lr_silu(float x) { return x * lr_sigmoid(x); }
// log(1 + e^x). What 1 + e loses of a small e is in the quotient.
LR_INLINE float lr_softplus(float x) {
  const float e = lr_exp(-fabsf(x)), sum = 1.f + e;
  return fmaxf(x, 0.f) + (sum == 1.f ? e : logf(sum) * (e / (sum - 1.f)));
}

// Functions on vectors, the same polynomial on every instruction set. Relative error below 2e-7.
#pragma once

namespace {

// e^x; exactly 1 at 0, exactly 0 below -87.3, +inf never: x counts as 88.3 at most. A NaN stays one: of a minimum and a
// maximum the second counts then.
LR_INLINE F f_exp(F x) {
  const F clamped = f_min(f_set(88.3f), f_max(f_set(-87.33f), x));
  const F magic = f_set(12582912.0f);  // 1.5 · 2^23: adding it leaves no fraction bits
  const F shifted = f_add(f_mul(clamped, f_set(1.44269504f)), magic);
  const F n = f_sub(shifted, magic);
  F r = f_fma(n, f_set(-0.693359375f), clamped);  // ln 2 in two parts: n times the first is exact
  r = f_fma(n, f_set(2.12194440e-4f), r);
  F p = f_fma(r, f_set(1.3888889e-3f), f_set(8.3333333e-3f));
  p = f_fma(p, r, f_set(4.1666667e-2f));
  p = f_fma(p, r, f_set(1.6666667e-1f));
  p = f_fma(p, r, f_set(0.5f));
  p = f_fma(p, r, f_set(1.0f));
  p = f_fma(p, r, f_set(1.0f));
  const I power = i_shl<23>(i_sub(i_of_bits(shifted), i_set(0x4b400000 - 127)));
  return f_unless_greater(f_set(-87.33f), x, f_mul(p, f_of_bits(power)));
}

LR_INLINE F f_sigmoid(F x) { return f_div(f_set(1.0f), f_add(f_set(1.0f), f_exp(f_sub(f_zero(), x)))); }
LR_INLINE F f_silu(F x) { return f_mul(x, f_sigmoid(x)); }

// The tanh form of GELU: x/2 · (1 + tanh u) = x · sigmoid(2 u), u = sqrt(2 / pi) · (x + 0.044715 x³).
LR_INLINE F f_gelu(F x) {
  const F cubic = f_mul(f_mul(x, x), f_set(0.044715f));
  return f_mul(x, f_sigmoid(f_mul(f_set(1.5957691f), f_fma(cubic, x, x))));
}

LR_INLINE F f_tanh(F x) { return f_sub(f_set(1.0f), f_div(f_set(2.0f), f_add(f_set(1.0f), f_exp(f_add(x, x))))); }

LR_INLINE F f_softcap(F x, F cap) { return f_mul(cap, f_tanh(f_div(x, cap))); }

}  // namespace

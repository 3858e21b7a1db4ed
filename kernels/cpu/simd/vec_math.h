// Functions on vectors of floats, the same polynomial on every instruction set.
#pragma once

namespace {

// e^x with a relative error below 2e-7; exactly 1 at 0, exactly 0 below -87.3, +inf never: x counts as 88.3 at most. A NaN
// stays one: of a minimum and a maximum the second counts then.
template <class V> LR_INLINE V v_exp(V x) {
  const V clamped = v_min(v_set<V>(88.3f), v_max(v_set<V>(-87.33f), x));
  const float magic = 12582912.0f;  // 1.5 · 2^23: adding it leaves no fraction bits
  const V shifted = clamped * 1.44269504f + magic;
  const V n = shifted - magic;
  V r = v_fma(n, v_set<V>(-0.693359375f), clamped);  // ln 2 in two parts: n times the first is exact
  r = v_fma(n, v_set<V>(2.12194440e-4f), r);
  V p = v_fma(r, v_set<V>(1.3888889e-3f), v_set<V>(8.3333333e-3f));
  p = v_fma(p, r, v_set<V>(4.1666667e-2f));
  p = v_fma(p, r, v_set<V>(1.6666667e-1f));
  p = v_fma(p, r, v_set<V>(0.5f));
  p = v_fma(p, r, v_set<V>(1.0f));
  p = v_fma(p, r, v_set<V>(1.0f));
  const auto power = (v_bits(shifted) - (0x4b400000 - 127)) << 23;
  return v_select(-87.33f > x, V{}, p * v_of_bits(power));
}

// e^x for softmax, where x <= 0 is small when it counts: cheaper than v_exp, whose error does not grow with |x|. For
// x <= 88; exactly 1 at 0, exactly 0 below -87, NaN stays NaN. 2^n by the exponent, 2^f by a series on |f| <= 1/2.
LR_INLINE f32v v_exp_fast(f32v x) {
  const f32v t = x * 1.44269504f;
#if defined(__AVX512F__)
  const f32v n = _mm512_maskz_roundscale_ps((__mmask16)-1, t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  const float magic = 12582912.0f;
  const f32v n = (t + magic) - magic;
#endif
  const f32v f = t - n;
  f32v p = v_set<f32v>(1.54035304e-4f);
  p = v_fma(p, f, v_set<f32v>(1.33335581e-3f));
  p = v_fma(p, f, v_set<f32v>(9.61812911e-3f));
  p = v_fma(p, f, v_set<f32v>(5.55041087e-2f));
  p = v_fma(p, f, v_set<f32v>(2.40226507e-1f));
  p = v_fma(p, f, v_set<f32v>(6.93147181e-1f));
  p = v_fma(p, f, v_set<f32v>(1.0f));
#if defined(__AVX512F__)
  const f32v y = _mm512_maskz_scalef_ps((__mmask16)-1, p, n);
#else
  const f32v y = p * v_of_bits((__builtin_convertvector(n, i32v) + 127) << 23);
#endif
  return v_select(x < -87.0f, f32v{}, y);
}
LR_INLINE float exp_fast(float x) { return v_exp_fast(v_set<f32v>(x))[0]; }

template <class V> LR_INLINE V v_sigmoid(V x) { return 1.0f / (1.0f + v_exp(0.0f - x)); }
template <class V> LR_INLINE V v_silu(V x) { return x * v_sigmoid(x); }

// The tanh form of GELU: x/2 · (1 + tanh u) = x · sigmoid(2 u), u = sqrt(2 / pi) · (x + 0.044715 x³).
template <class V> LR_INLINE V v_gelu(V x) { return x * v_sigmoid(1.5957691f * v_fma(x * x * 0.044715f, x, x)); }

// x · Φ(x), Φ the normal distribution, by an approximation of erf with an error below 1.5e-7 (Abramowitz and Stegun 7.1.26).
template <class V> LR_INLINE V v_gelu_erf(V x) {
  const V size = v_max(x, 0.0f - x), z = size * 0.70710678f;
  const V t = 1.0f / v_fma(z, v_set<V>(0.3275911f), v_set<V>(1.0f));
  V p = v_fma(t, v_set<V>(1.061405429f), v_set<V>(-1.453152027f));
  p = v_fma(p, t, v_set<V>(1.421413741f));
  p = v_fma(p, t, v_set<V>(-0.284496736f));
  p = v_fma(p, t, v_set<V>(0.254829592f));
  const V beyond = 0.5f * p * t * v_exp(0.0f - z * z);  // Φ(-|x|)
  return x * v_select(x > 0.0f, 1.0f - beyond, beyond);
}

template <class V> LR_INLINE V v_tanh(V x) { return 1.0f - 2.0f / (1.0f + v_exp(x + x)); }

// cap · tanh(x / cap)
template <class V> LR_INLINE V v_softcap(V x, float cap) { return cap * v_tanh(x / cap); }
LR_INLINE f32v v_softcap_fast(f32v x, float cap) {
  f32v t = x * (2.0f / cap);
  t = v_select(t > 80.0f, v_set<f32v>(80.0f), t);
  return cap - (2.0f * cap) / (v_exp_fast(t) + 1.0f);
}

}  // namespace

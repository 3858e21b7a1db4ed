// What is done with sixteen lanes is done with each of their registers; only a reduction first folds them into one.
#pragma once

namespace {

#define LR_X16_OPERATOR(op)                                                             \
  template <class R> LR_INLINE auto operator op(x16<R> a, x16<R> b) {                   \
    x16<std::decay_t<decltype(a.v[0] op b.v[0])>> out;                                  \
    for (int i = 0; i < 16 / VL; i++) out.v[i] = a.v[i] op b.v[i];                      \
    return out;                                                                         \
  }                                                                                     \
  template <class R, class T> LR_INLINE auto operator op(x16<R> a, T b) {               \
    x16<std::decay_t<decltype(a.v[0] op b)>> out;                                       \
    for (int i = 0; i < 16 / VL; i++) out.v[i] = a.v[i] op b;                           \
    return out;                                                                         \
  }                                                                                     \
  template <class R, class T> LR_INLINE auto operator op(T a, x16<R> b) {               \
    x16<std::decay_t<decltype(a op b.v[0])>> out;                                       \
    for (int i = 0; i < 16 / VL; i++) out.v[i] = a op b.v[i];                           \
    return out;                                                                         \
  }
LR_X16_OPERATOR(+)
LR_X16_OPERATOR(-)
LR_X16_OPERATOR(*)
LR_X16_OPERATOR(/)
LR_X16_OPERATOR(&)
LR_X16_OPERATOR(<<)
LR_X16_OPERATOR(>>)
LR_X16_OPERATOR(>)
LR_X16_OPERATOR(>=)
#undef LR_X16_OPERATOR

// By name, of one, two or three vectors.
#define LR_X16_1(result, name)                                        \
  template <class R> LR_INLINE auto name(x16<R> a) {                  \
    x16<result> out;                                                  \
    for (int i = 0; i < 16 / VL; i++) out.v[i] = name(a.v[i]);        \
    return out;                                                       \
  }
#define LR_X16_2(name)                                                \
  template <class R> LR_INLINE x16<R> name(x16<R> a, x16<R> b) {      \
    for (int i = 0; i < 16 / VL; i++) a.v[i] = name(a.v[i], b.v[i]);  \
    return a;                                                         \
  }
LR_X16_1(f32v, v_to_f32)
LR_X16_1(i32v, v_round)
LR_X16_1(i32v, v_bits)
LR_X16_1(f32v, v_of_bits)
LR_X16_1(R, v_low4)
LR_X16_1(R, v_high4)
LR_X16_1(R, v_signed)
LR_X16_1(R, v_first_third)
LR_X16_1(R, v_second_fourth)
LR_X16_2(v_min)
LR_X16_2(v_max)
LR_X16_2(v_lookup)
#undef LR_X16_1
#undef LR_X16_2

template <class R> LR_INLINE x16<R> v_fma(x16<R> a, x16<R> b, x16<R> c) {
  for (int i = 0; i < 16 / VL; i++) c.v[i] = v_fma(a.v[i], b.v[i], c.v[i]);
  return c;
}
template <class R> LR_INLINE auto v_pick(const float* table, x16<R> names) {
  x16<f32v> out;
  for (int i = 0; i < 16 / VL; i++) out.v[i] = v_pick(table, names.v[i]);
  return out;
}
template <class M, class R> LR_INLINE x16<R> v_select(x16<M> mask, x16<R> yes, x16<R> no) {
  for (int i = 0; i < 16 / VL; i++) no.v[i] = v_select(mask.v[i], yes.v[i], no.v[i]);
  return no;
}
template <class R> LR_INLINE void v_store_n(float* p, x16<R> all, int n) {
  for (int i = 0; i < 16 / VL; i++) v_store_n(p + VL * i, all.v[i], n - VL * i);
}
template <class R> LR_INLINE uint32_t v_lanes(x16<R> mask) {
  uint32_t lanes = 0;
  for (int i = 0; i < 16 / VL; i++) lanes |= v_lanes(mask.v[i]) << VL * i;
  return lanes;
}
template <class T, class R> LR_INLINE void v_store_i8(T* p, x16<R> all) {
  for (int i = 0; i < 16 / VL; i++) v_store_i8(p + VL * i, all.v[i]);
}
template <class T, class R> LR_INLINE void v_store_u8(T* p, x16<R> all) {
  for (int i = 0; i < 16 / VL; i++) v_store_u8(p + VL * i, all.v[i]);
}

template <int by, class R> LR_INLINE x16<R> v_join(x16<R> code, x16<R> high, uint8_t mask) {
  for (int i = 0; i < 16 / VL; i++) code.v[i] = v_join<by>(code.v[i], high.v[i], mask);
  return code;
}
template <int n, class R> LR_INLINE x16<R> v_take(x16<R> a) {
  for (int i = 0; i < 16 / VL; i++) a.v[i] = v_take<n>(a.v[i]);
  return a;
}

#define LR_X16_DOT(name, A, B, a, b)                                          \
  template <class I, class U> LR_INLINE x16<I> name(x16<I> c, A, B) {         \
    for (int i = 0; i < 16 / VL; i++) c.v[i] = name(c.v[i], a, b);            \
    return c;                                                                 \
  }
LR_X16_DOT(v_dot_signed, x16<U> codes, i8v x, codes.v[i], x)
LR_X16_DOT(v_dot_unsigned, x16<U> codes, i8v x, codes.v[i], x)
#undef LR_X16_DOT

#ifndef LR_HAS_CODE_SUM
template <int most, int zero, int n> struct CodeSum<most, zero, n, false, i32v> {
  i32v sum;
  LR_ALWAYS_INLINE void begin(i32v start, const int32_t*) { sum = start; }
  LR_ALWAYS_INLINE void add(int, u8v codes, const int8_t* x) {
    sum = most ? v_dot_unsigned(sum, codes, v_set4(x)) : v_dot_signed(sum, codes, v_set4(x));
  }
  LR_ALWAYS_INLINE i32v total() const { return sum; }
};
#endif
template <int most, int zero, int n, bool factored> struct CodeSum<most, zero, n, factored, x16<i32v>> {
  CodeSum<most, zero, n, factored, i32v> v[16 / VL];
  LR_ALWAYS_INLINE void begin(x16<i32v> start, const int32_t* factors) {
    for (int i = 0; i < 16 / VL; i++) v[i].begin(start.v[i], factors);
  }
  LR_ALWAYS_INLINE void add(int at, x16<u8v> codes, const int8_t* x) {
    for (int i = 0; i < 16 / VL; i++) v[i].add(at, codes.v[i], x);
  }
  LR_ALWAYS_INLINE x16<i32v> total() const {
    x16<i32v> all;
    for (int i = 0; i < 16 / VL; i++) all.v[i] = v[i].total();
    return all;
  }
};

template <int most, int zero, int n> struct WideCodeSum {
  CodeSum<most, zero, n, false, i32x16> high, low;
  LR_ALWAYS_INLINE void begin(i32x16 start, const int32_t* factors) {
    high.begin(i32x16{}, factors);
    low.begin(start, factors);
  }
  LR_ALWAYS_INLINE void add(int at, u8x64 codes, const int8_t* x) {
    high.add(at, codes, x);
    low.add(at, codes, x + 32);
  }
  LR_ALWAYS_INLINE i32x16 total() const { return (high.total() << 8) + low.total(); }
};

#if LR_HAS_WIDENED_SUM
// One instruction multiplies half as many codes as in the CodeSum of AVX2, but there signed ones take four.
struct WidenedSum {
  x16<i32v> sum;
  LR_ALWAYS_INLINE void begin(x16<i32v> start) { sum = start; }
  LR_ALWAYS_INLINE void add(x16<u8v> codes, const int8_t* two) {
    const i32v x = (i32v)v_set4(two);
    for (int i = 0; i < 16 / VL; i++) {
      sum.v[i] = v_dot_i16(sum.v[i], (i32v)codes.v[i], x);
      in_order(sum.v[i]);
    }
  }
  LR_ALWAYS_INLINE x16<i32v> total() const { return sum; }
};
#endif

// Registers are folded by halves, as each is then.
template <class R> LR_INLINE auto v_reduce_sum(x16<R> a) {
  if constexpr (sizeof a == 4 * sizeof(R))
    for (int i = 0; i < 2; i++) a.v[i] = a.v[i] + a.v[i + 2];
  return v_reduce_sum(a.v[0] + a.v[1]);
}
template <class R> LR_INLINE auto v_reduce_max(x16<R> a) {
  if constexpr (sizeof a == 4 * sizeof(R))
    for (int i = 0; i < 2; i++) a.v[i] = v_max(a.v[i], a.v[i + 2]);
  return v_reduce_max(v_max(a.v[0], a.v[1]));
}

}  // namespace

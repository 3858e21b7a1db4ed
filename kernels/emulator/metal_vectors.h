// Vectors of the Metal Shading Language: components, swizzles of neighbours, constructors and operators.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

namespace metal {
template <class T, int N> struct vec;

// Components FIRST and on of a vector of T, where they lie.
template <class V, class T, int FIRST, int N> struct emu_part {
  T all[N];
  operator V() const { return emu_read((const T*)all + FIRST); }
  emu_part& operator=(const V& v) {
    for (int i = 0; i < V::SIZE; i++) all[FIRST + i] = v[i];
    return *this;
  }
  emu_part& operator=(const emu_part& other) { return *this = (V)other; }

 private:
  static V emu_read(const T* from) {
    V v;
    for (int i = 0; i < V::SIZE; i++) v[i] = from[i];
    return v;
  }
};

template <class T> constexpr int emu_count = 1;
template <class T, int N> constexpr int emu_count<vec<T, N>> = N;
template <class V, class T, int FIRST, int N> constexpr int emu_count<emu_part<V, T, FIRST, N>> = V::SIZE;

template <class T, int N> struct emu_components;
template <class T> struct emu_components<T, 2> {
  union {
    T all[2];
    struct { T x, y; };
    struct { T r, g; };
  };
};
template <class T> struct emu_components<T, 3> {
  union {
    T all[3];
    struct { T x, y, z; };
    struct { T r, g, b; };
    emu_part<vec<T, 2>, T, 0, 3> xy;
    emu_part<vec<T, 2>, T, 1, 3> yz;
  };
};
template <class T> struct emu_components<T, 4> {
  union {
    T all[4];
    struct { T x, y, z, w; };
    struct { T r, g, b, a; };
    emu_part<vec<T, 2>, T, 0, 4> xy;
    emu_part<vec<T, 2>, T, 2, 4> zw;
    emu_part<vec<T, 3>, T, 0, 4> xyz;
  };
};

template <class T, int N> struct alignas((N == 3 ? 4 : N) * sizeof(T)) vec : emu_components<T, N> {
  static constexpr int SIZE = N;
  vec() = default;
  vec(const vec&) = default;
  vec& operator=(const vec& v) {
    memcpy((void*)this->all, v.all, sizeof this->all);
    return *this;
  }
  vec(T same) {
    for (int i = 0; i < N; i++) this->all[i] = same;
  }
  template <class U> explicit vec(const vec<U, N>& v) {
    for (int i = 0; i < N; i++) this->all[i] = (T)v[i];
  }
  // Numbers and shorter vectors that have N components together.
  template <class A, class B, class... C> vec(const A& a, const B& b, const C&... c) {
    static_assert(emu_count<A> + emu_count<B> + (0 + ... + emu_count<C>) == N, "components are missing, or too many");
    T* to = this->all;
    put(to, a), put(to, b), (put(to, c), ...);
  }
  T& operator[](size_t i) { return this->all[i]; }
  const T& operator[](size_t i) const { return this->all[i]; }

#define EMU_BINARY(op)                                            \
  friend vec operator op(const vec& a, const vec& b) {            \
    vec r;                                                        \
    for (int i = 0; i < N; i++) r[i] = (T)(a[i] op b[i]);         \
    return r;                                                     \
  }                                                               \
  vec& operator op##=(const vec& b) { return *this = *this op b; }
  EMU_BINARY(+) EMU_BINARY(-) EMU_BINARY(*) EMU_BINARY(/)
  EMU_BINARY(&) EMU_BINARY(|) EMU_BINARY(^) EMU_BINARY(<<) EMU_BINARY(>>)  // of floats: compiled where used, and an error there
#undef EMU_BINARY
#define EMU_COMPARE(op)                                                                      \
  friend vec<bool, N> operator op(const vec& a, const vec& b) {                              \
    vec<bool, N> r;                                                                          \
    for (int i = 0; i < N; i++) r[i] = a[i] op b[i];                                         \
    return r;                                                                                \
  }
  EMU_COMPARE(<) EMU_COMPARE(<=) EMU_COMPARE(>) EMU_COMPARE(>=) EMU_COMPARE(==) EMU_COMPARE(!=)
#undef EMU_COMPARE
  vec operator-() const {
    vec r;
    for (int i = 0; i < N; i++) r[i] = -this->all[i];
    return r;
  }

 private:
  template <class U> static void put(T*& to, const U& number) { *to++ = (T)number; }
  template <class U, int M> static void put(T*& to, const vec<U, M>& v) {
    for (int i = 0; i < M; i++) *to++ = (T)v[i];
  }
  template <class V, class U, int F, int M> static void put(T*& to, const emu_part<V, U, F, M>& v) { put(to, (V)v); }
};
}  // namespace metal

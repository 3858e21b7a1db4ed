// Shuffles, ballots, ldmatrix and the tensor core, by the fragment layouts of the PTX manual; Metal's simdgroup matrices.
#include "warp.h"

#include <utility>

namespace {
constexpr int LANES = 32;
// What a shuffle from a lane outside the mask gives: undefined on a GPU, here a NaN that no test takes for right.
constexpr uint32_t NOBODY = 0x7fc0dead;

float of_bits(uint32_t bits) {
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}

// Numbers of a register: how many it holds, and the i-th of them.
struct S8 {
  using Number = int32_t;
  static constexpr int PER_REGISTER = 4;
  static int32_t at(uint32_t r, int i) { return (int8_t)(r >> 8 * i); }
};
struct U8 : S8 {
  static int32_t at(uint32_t r, int i) { return (uint8_t)(r >> 8 * i); }
};
struct F16 {
  using Number = float;
  static constexpr int PER_REGISTER = 2;
  static float at(uint32_t r, int i) {
    const uint16_t bits = (uint16_t)(r >> 16 * i);
    _Float16 f;
    __builtin_memcpy(&f, &bits, 2);
    return (float)f;
  }
};
struct BF16 : F16 {
  static float at(uint32_t r, int i) { return of_bits(i ? r & 0xffff0000u : r << 16); }
};

// Bits that tensor cores keep below the last of float32 while they add floats; negative: each sum is rounded to nearest.
int extra_bits = -1;

double power_of_two(int exponent) {
  const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
  double power;
  __builtin_memcpy(&power, &bits, 8);
  return power;
}
float rounded_to_zero(double x) {
  const float f = (float)x;
  if (!(__builtin_fabs(f) > __builtin_fabs(x))) return f;
  uint32_t bits;
  __builtin_memcpy(&bits, &f, 4);
  return of_bits(bits - 1);
}
// total + a · b in units of N products, as tensor cores give it: products are exact, all addends of a unit are aligned to the
// greatest, what is below its last bit and `extra_bits` more is cut off, and so is what float32 does not hold of the sum.
template <int N> float cut_sums(float total, const float* a, const float* b, int n) {
  for (int k = 0; k < n; k += N) {
    double addends[N + 1], plain = addends[N] = total, greatest = __builtin_fabs(plain), sum = 0;
    for (int i = 0; i < N; i++) {
      plain += addends[i] = (double)a[k + i] * b[k + i];
      greatest = __builtin_fmax(greatest, __builtin_fabs(addends[i]));
    }
    if (greatest > 0 && __builtin_isfinite(plain)) {
      const int last = __builtin_ilogb(greatest) - 23 - extra_bits;
      for (const double addend : addends) sum += __builtin_trunc(addend * power_of_two(-last));
      plain = sum * power_of_two(last);
    }
    total = rounded_to_zero(plain);
  }
  return total;
}

uint32_t added(uint32_t c, const int32_t* a, const int32_t* b, int n) {
  for (int k = 0; k < n; k++) c += (uint32_t)(a[k] * b[k]);
  return c;
}
// Units of 4 (Volta, Turing: no extra bits), 8 (Ampere, Ada: one) or 16 products (Hopper: two or more) follow each other:
// Fasi, Higham, Mikaitis and Pranesh, doi 10.7717/peerj-cs.330; Li et al., arXiv 2403.00232; Khattak and Mikaitis, arXiv
// 2512.07004.
uint32_t added(uint32_t c, const float* a, const float* b, int n) {
  float total = of_bits(c), sum = 0;
  if (extra_bits == 0) total = cut_sums<4>(total, a, b, n);
  else if (extra_bits == 1 || (extra_bits == 2 && n == 8)) total = cut_sums<8>(total, a, b, n);
  else if (extra_bits == 2) total = cut_sums<16>(total, a, b, n);
  else {
    for (int k = 0; k < n; k++) sum += a[k] * b[k];
    total += sum;
  }
  __builtin_memcpy(&c, &total, 4);
  return c;
}

// C[M][8] += A[M][K] · B[K][8] with K = 4 · PER_REGISTER · STEPS. Lane 4g + t holds in register r of A row g (+ 8 in every
// other one where M is 16) and of B column g, at PER_REGISTER columns from t on of the K step of the register; of C rows g
// and g + 8, columns 2t and 2t + 1.
template <class A, class B, int M, int STEPS> void multiply(void* const* lanes) {
  constexpr int N = A::PER_REGISTER, K = 4 * N * STEPS, HALVES = M / 8;
  typename A::Number a[M][K], b[8][K];
  for (int lane = 0; lane < LANES; lane++) {
    const emu_mma& m = *(emu_mma*)lanes[lane];
    const int g = lane / 4, t = lane % 4;
    for (int step = 0; step < STEPS; step++)
      for (int i = 0; i < N; i++) {
        const int k = (4 * step + t) * N + i;
        for (int half = 0; half < HALVES; half++) a[g + 8 * half][k] = A::at(m.a[step * HALVES + half], i);
        b[g][k] = B::at(m.b[step], i);
      }
  }
  for (int lane = 0; lane < LANES; lane++)
    for (int j = 0; j < 2 * HALVES; j++) {
      const int row = lane / 4 + 8 * (j / 2), column = 2 * (lane % 4) + j % 2;
      uint32_t& c = ((emu_mma*)lanes[lane])->c[j];
      c = added(c, a[row], b[column], K);
    }
}

// Four 8×8 matrices of 16 bits: lane 8j + i brings row i of matrix j, and lane 4g + t gets two numbers of each.
void load_matrices(void* const* lanes, bool transposed) {
  uint16_t rows[LANES][8];
  for (int lane = 0; lane < LANES; lane++) __builtin_memcpy(rows[lane], &((emu_matrix_row*)lanes[lane])->row, 16);
  for (int lane = 0; lane < LANES; lane++)
    for (int j = 0; j < 4; j++) {
      const int g = lane / 4, t = lane % 4;
      const uint32_t low = transposed ? rows[8 * j + 2 * t][g] : rows[8 * j + g][2 * t];
      const uint32_t high = transposed ? rows[8 * j + 2 * t + 1][g] : rows[8 * j + g][2 * t + 1];
      ((emu_matrix_row*)lanes[lane])->result[j] = high << 16 | low;
    }
}
// C[8][8] += A[8][8] · B[8][8] of Metal's simdgroup matrices, each number a chain of fma in ascending k. A lane holds two
// columns of a row, of all three alike.
void multiply_8x8(void* const* lanes) {
  float a[8][8], b[8][8];
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < 2; i++) {
      const emu_mma_8x8& m = *(emu_mma_8x8*)lanes[lane];
      const int row = emu_row_8x8(lane), column = emu_column_8x8(lane) + i;
      a[row][column] = m.a[i], b[row][column] = m.b[i];
    }
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < 2; i++) {
      float& c = ((emu_mma_8x8*)lanes[lane])->c[i];
      for (int k = 0; k < 8; k++) c = __builtin_fmaf(a[emu_row_8x8(lane)][k], b[k][emu_column_8x8(lane) + i], c);
    }
}
void shuffle(uint32_t mask, void* const* lanes) {
  for (int lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) {
      emu_shuffle& s = *(emu_shuffle*)lanes[lane];
      const uint32_t source = s.source % LANES;
      s.result = mask >> source & 1 ? ((emu_shuffle*)lanes[source])->value : NOBODY;
    }
}
void ballot(uint32_t mask, void* const* lanes) {
  uint32_t all = 0;
  for (int lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) all |= *(uint32_t*)lanes[lane] << lane;
  for (int lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) *(uint32_t*)lanes[lane] = all;
}
}  // namespace

// 0 to 2 extra bits, or -1.
extern "C" void emu_tensor_cores(int bits) { extra_bits = bits; }

void perform(emu_op op, uint32_t mask, void* const* lanes) {
  switch (op) {
    case EMU_SYNC: return;
    case EMU_SHUFFLE: return shuffle(mask, lanes);
    case EMU_BALLOT: return ballot(mask, lanes);
    case EMU_LDMATRIX: return load_matrices(lanes, false);
    case EMU_LDMATRIX_TRANS: return load_matrices(lanes, true);
    case EMU_M16N8K32_S8: return multiply<S8, S8, 16, 2>(lanes);
    case EMU_M16N8K32_S8U8: return multiply<S8, U8, 16, 2>(lanes);
    case EMU_M16N8K16_S8: return multiply<S8, S8, 16, 1>(lanes);
    case EMU_M16N8K16_F16: return multiply<F16, F16, 16, 2>(lanes);
    case EMU_M16N8K16_BF16: return multiply<BF16, BF16, 16, 2>(lanes);
    case EMU_M8N8K16_S8: return multiply<S8, S8, 8, 1>(lanes);
    case EMU_M8N8K16_S8U8: return multiply<S8, U8, 8, 1>(lanes);
    case EMU_M16N8K8_F16: return multiply<F16, F16, 16, 1>(lanes);
    case EMU_M8N8K8_F32: return multiply_8x8(lanes);
  }
}

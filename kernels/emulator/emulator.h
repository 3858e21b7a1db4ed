// GPU kernels on a CPU: what threads, meetings and launches are to the kernel's side (cuda.h, metal.h) and to the scheduler's.
//
// One block runs at a time. Every thread of it is a fiber that runs to its next meeting (barrier, shuffle, mma …), and the
// last to arrive there does the work for all. Fibers and meetings live in fibers.cpp, scheduler.cpp and warp.cpp: a library
// that all kernels of a process share, so that their stacks stay in the caches. It is never sanitized; every read and write of
// memory by a kernel stays in its own translation unit, so that ASan, UBSan and TSan see it. TSan takes fibers for threads that
// only barriers order: it finds the races inside a block.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <utility>

struct emu_dim { uint32_t x, y, z; };
struct alignas(16) emu_16_bytes { uint32_t word[4]; };
struct emu_copy { void* to; emu_16_bytes data; int group; };  // a cp.async that nobody has waited for

enum { EMU_MAX_COPIES = 64 };
struct emu_place { emu_dim block, block_dim, grid_dim; };  // of all threads that run
struct emu_thread {
  emu_dim thread;
  uint32_t index, lane;  // in the block, in the warp
  emu_copy* copies;  // EMU_MAX_COPIES
  int n_copies, n_groups;
  uint32_t shared_bytes;  // of the threadgroup variables it has come by
};

enum emu_op {
  EMU_SYNC, EMU_SHUFFLE, EMU_BALLOT, EMU_LDMATRIX, EMU_LDMATRIX_TRANS,
  EMU_M16N8K32_S8, EMU_M16N8K32_S8U8, EMU_M16N8K16_S8, EMU_M16N8K16_F16, EMU_M16N8K16_BF16,
  EMU_M8N8K16_S8, EMU_M8N8K16_S8U8, EMU_M16N8K8_F16, EMU_M8N8K8_F32,
};
// Operands of one lane, and afterwards its result.
struct emu_shuffle { uint32_t value, source, result; };
struct emu_mma { uint32_t a[4], b[2], c[4]; };
struct emu_mma_8x8 { float a[2], b[2], c[2]; };  // columns emu_column_8x8 and the next one of row emu_row_8x8
static inline int emu_row_8x8(int lane) { return (lane / 4 & 4) + lane / 2 % 4; }
static inline int emu_column_8x8(int lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }
struct emu_matrix_row { emu_16_bytes row; uint32_t result[4]; };

extern "C" {
extern emu_thread* emu_current;
extern emu_place emu_at;
void* emu_dynamic_shared(void);
[[noreturn]] void emu_fail(const char* what, const char* file, int line);
// Of all threads that are left; or, where `of_all`, of every thread of the block.
void emu_block_barrier(const char* file, int line, bool of_all = false);
// The lanes named in `mask` meet; `operands` are this lane's.
void emu_meet(emu_op op, uint32_t mask, void* operands, const char* file, int line);
// Where the linker put the kernels' shared memory, if they have any.
__attribute__((weak, visibility("hidden"))) extern char __start_lr_shared[], __stop_lr_shared[];
struct emu_call {
  void (*body)(void*);
  void* closure;
  char *shared, *shared_end;  // of the kernels' file
  uint32_t shared_bytes;      // beside it, of this launch
};
// 1: emu_error() says what went wrong, and where.
int emu_launch(const emu_call* call, const uint32_t grid[3], const uint32_t block[3]);
}
// Last parameter of whatever may fail: the line of the kernel that called it.
#define EMU_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <class T> static inline T emu_shuffled(uint32_t mask, T value, uint32_t source, const char* file, int line) {
  static_assert(sizeof(T) == 4, "shuffles move 32 bits");
  emu_shuffle s{0, source, 0};
  memcpy(&s.value, &value, 4);
  emu_meet(EMU_SHUFFLE, mask, &s, file, line);
  memcpy(&value, &s.result, 4);
  return value;
}

// A kernel's parameters as letters: p a pointer, i an int, f a float. Nothing else can be passed.
template <class T> struct emu_letter;
template <class T> struct emu_letter<T*> { static constexpr char value = 'p'; };
template <> struct emu_letter<int> { static constexpr char value = 'i'; };
template <> struct emu_letter<float> { static constexpr char value = 'f'; };
template <class... A> static inline const char* emu_parameters(void (*)(A...)) {
  static constexpr char letters[] = {emu_letter<A>::value..., 0};
  return letters;
}

template <class... A, size_t... I>
static inline void emu_apply(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
  kernel(*(std::remove_reference_t<A>*)arguments[I]...);
}
template <class... A>
static inline int emu_start(void (*kernel)(A...), const uint32_t* grid, const uint32_t* block, uint32_t shared_bytes,
                            void** arguments) {
  struct Call { void (*kernel)(A...); void** arguments; } call{kernel, arguments};
  auto body = [](void* p) {
    Call* call = (Call*)p;
    emu_apply(call->kernel, call->arguments, std::index_sequence_for<A...>{});
  };
  const emu_call launch{body, &call, __start_lr_shared, __stop_lr_shared, shared_bytes};
  return emu_launch(&launch, grid, block);
}

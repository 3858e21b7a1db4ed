// Fibers for x86-64 by hand and for other machines by ucontext, and what ASan and TSan want to hear of them.
#include "fibers.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {  // there when the kernel is sanitized
__attribute__((weak)) void* __tsan_get_current_fiber(void);
__attribute__((weak)) void* __tsan_create_fiber(unsigned);
__attribute__((weak)) void __tsan_switch_to_fiber(void*, unsigned);
__attribute__((weak)) void __tsan_acquire(void*);
__attribute__((weak)) void __tsan_release(void*);
__attribute__((weak)) void __sanitizer_start_switch_fiber(void**, const void*, size_t);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void*, const void**, size_t*);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void*, size_t);
}

#if defined(__x86_64__)
static void set_entry(Fiber& fiber, void (*entry)()) {
  void** top = (void**)(fiber.stack + fiber.stack_size - 16);
  *--top = nullptr;  // where `entry` would return to
  *--top = (void*)entry;
  fiber.sp = top - 1;
}
// Neither a call nor a return: the processor foresees returns by the calls before them, and those were another fiber's.
static inline void enter(Fiber& from, Fiber& to) {
  void **sp = &from.sp, *next = to.sp;
  asm volatile(
      "lea 1f(%%rip), %%rax\n push %%rax\n push %%rbp\n"
      "mov %%rsp, (%0)\n mov %1, %%rsp\n"
      "pop %%rbp\n pop %%rax\n jmp *%%rax\n"
      "1:"
      : "+D"(sp), "+S"(next)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#else
#include <ucontext.h>
static ucontext_t* context(Fiber& fiber) {
  if (!fiber.sp) fiber.sp = calloc(1, sizeof(ucontext_t));
  return (ucontext_t*)fiber.sp;
}
static void set_entry(Fiber& fiber, void (*entry)()) {
  getcontext(context(fiber));
  context(fiber)->uc_stack.ss_sp = fiber.stack;
  context(fiber)->uc_stack.ss_size = fiber.stack_size;
  makecontext(context(fiber), entry, 0);
}
static void enter(Fiber& from, Fiber& to) { swapcontext(context(from), context(to)); }
#endif

void fiber_of_caller(Fiber& caller) {
  caller.stack = nullptr, caller.stack_size = 0;  // ASan tells them to the first fiber that starts
  if (__tsan_get_current_fiber) caller.tsan = __tsan_get_current_fiber();
}
// Stacks of 64 fibers lie side by side behind one page that nobody may touch: a process has room for 65,530 mappings, and
// each kernel it loads has fibers of its own.
static char* new_stack(size_t size) {
  static char* at;
  static int left;
  if (!left) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    at = (char*)mmap(nullptr, page + 64 * size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED || mprotect(at, page, PROT_NONE)) abort();
    at += page, left = 64;
  }
  char* stack = at;
  at += size, left--;
  return stack;
}
// Each ends a little sooner than the one before: tops of stacks 256 KiB apart would share the same few lines of a cache.
void new_fiber(Fiber& fiber) {
  static unsigned n_fibers;
  const size_t size = (256 << 10) - n_fibers++ % 256 * 320;
  fiber = {nullptr, new_stack(256 << 10), size, __tsan_create_fiber ? __tsan_create_fiber(0) : nullptr, nullptr};
}
void rewind(Fiber& fiber, void (*entry)()) {
  // A launch that failed leaves frames behind, and ASan's marks between them.
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(fiber.stack, fiber.stack_size);
  fiber.asan = nullptr;
  set_entry(fiber, entry);
}
void switch_fiber(Fiber& from, Fiber& to, bool for_good) {
  if (__sanitizer_start_switch_fiber)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &from.asan, to.stack, to.stack_size);
  if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(to.tsan, 1);  // 1: a switch orders nothing
  enter(from, to);
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(from.asan, nullptr, nullptr);
}
void fiber_has_started(Fiber* caller) {
  if (!__sanitizer_finish_switch_fiber) return;
  const void* stack;
  size_t size;
  __sanitizer_finish_switch_fiber(nullptr, &stack, &size);
  if (caller) caller->stack = (char*)stack, caller->stack_size = size;
}
void acquire(void* tag) {
  if (__tsan_acquire) __tsan_acquire(tag);
}
void release(void* tag) {
  if (__tsan_release) __tsan_release(tag);
}

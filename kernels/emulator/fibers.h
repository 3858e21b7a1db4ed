// A thread of control with a stack of its own, entered and left by hand: 12 ns a switch, where ucontext takes 250.
#pragma once
#include <stddef.h>

struct Fiber {
  void* sp;          // where it rests
  char* stack;       // its lowest byte, and how many
  size_t stack_size;
  void* tsan;        // what the sanitizers know it by
  void* asan;
};
// Who runs when no fiber does: the stack of the caller.
void fiber_of_caller(Fiber& caller);
// A stack with a page below it that nothing may touch.
void new_fiber(Fiber& fiber);
// Next time it is switched to, `fiber` calls `entry`, which never returns.
void rewind(Fiber& fiber, void (*entry)());
void switch_fiber(Fiber& from, Fiber& to, bool for_good = false);
// First thing in `entry`; `caller` when it is who switched here.
void fiber_has_started(Fiber* caller);
// Whatever happened before release(tag) has happened after acquire(tag): for TSan.
void acquire(void* tag);
void release(void* tag);

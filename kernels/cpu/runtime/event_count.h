// Waiting for what another thread will change: awake at first, asleep on an event count (a futex) when that takes long.
#pragma once
#include <stdint.h>

#include <atomic>
#include <chrono>
#if defined(__linux__)
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

#include "runtime/os_thread.h"

typedef std::chrono::steady_clock Clock;

// A thread waits awake between the steps of an answer: to wake a core takes up to a fifth of a step on a virtual machine.
// It begins to give way after ALONE, and stops after AWAKE, or once it was GONE: then others want its core.
const std::chrono::microseconds ALONE(20), AWAKE(5000), GONE(1000);

struct Waited {
  bool ready, gave_way;
  Clock::duration gone;  // at least GONE, or nothing
};

template <typename Ready> Waited wait_awake(const Ready& ready) {
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point now = begin, last = begin; now - begin < AWAKE; now = Clock::now()) {
    if (now - last >= GONE) return {false, true, now - last};
    last = now;
    for (int i = 0; i < 16; i++) {
      if (ready()) return {true, now - begin > ALONE, {}};
      cpu_relax();
    }
    if (now - begin > ALONE) yield_thread();
  }
  return {false, true, {}};
}

// Whoever changes something notifies; a sleeper looks again each time. Both sides' loads and stores, `ready` included,
// have to be sequentially consistent: either the notifier sees the sleeper or the sleeper sees the change.
class alignas(64) EventCount {
 public:
#if defined(__linux__)
  void notify_all() {
    if (!sleepers_.load()) return;
    epoch_.fetch_add(1);
    syscall(SYS_futex, &epoch_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  template <typename Ready> void wait(const Ready& ready, Clock::time_point end = Clock::time_point::max()) {
    sleepers_.fetch_add(1);
    for (;;) {
      const uint32_t seen = epoch_.load();
      const Clock::time_point now = Clock::now();
      if (ready() || now >= end) break;
      const int64_t left = std::chrono::nanoseconds(end - now).count();
      const timespec time = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
      const bool for_ever = end == Clock::time_point::max();
      syscall(SYS_futex, &epoch_, FUTEX_WAIT_PRIVATE, seen, for_ever ? nullptr : &time, nullptr, 0);
    }
    sleepers_.fetch_sub(1);
  }

 private:
  std::atomic<uint32_t> epoch_{0};
#else
  void notify_all() {
    if (!sleepers_.load()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }

  template <typename Ready> void wait(const Ready& ready, Clock::time_point end = Clock::time_point::max()) {
    sleepers_.fetch_add(1);
    std::unique_lock<std::mutex> lock(mutex_);
    if (end == Clock::time_point::max()) changed_.wait(lock, ready);
    else changed_.wait_until(lock, end, ready);
    lock.unlock();
    sleepers_.fetch_sub(1);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
#endif
  std::atomic<int32_t> sleepers_{0};
};

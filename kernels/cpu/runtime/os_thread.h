// What a thread asks of the system and of its processor, by platform.
#pragma once
#include <stdint.h>

#include <chrono>
#if defined(_WIN32)
#include <windows.h>
#else
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <pthread/qos.h>
#endif
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#if defined(_WIN32)
typedef HANDLE Thread;
#define THREAD_BODY DWORD WINAPI
inline unsigned long process() { return GetCurrentProcessId(); }
inline bool start(Thread* thread, DWORD(WINAPI* body)(void*), void* data) {
  return (*thread = CreateThread(nullptr, 0, body, data, 0, nullptr)) != nullptr;
}
inline void join(Thread thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}
inline void yield_thread() { SwitchToThread(); }
// Windows counts a thread's time in slices too coarse for this: there it counts as always running.
inline std::chrono::nanoseconds thread_cpu_time() { return std::chrono::steady_clock::now().time_since_epoch(); }
// A process without a window counts as one of the background, which is slowed down to save power.
inline void prefer_fast_cores() {
  THREAD_POWER_THROTTLING_STATE state = {THREAD_POWER_THROTTLING_CURRENT_VERSION,
                                         THREAD_POWER_THROTTLING_EXECUTION_SPEED, 0};
  SetThreadInformation(GetCurrentThread(), ThreadPowerThrottling, &state, sizeof state);  // a wish
}
#else
typedef pthread_t Thread;
#define THREAD_BODY void*
inline pid_t process() { return getpid(); }
inline bool start(Thread* thread, void* (*body)(void*), void* data) {
  return pthread_create(thread, nullptr, body, data) == 0;
}
inline void join(Thread thread) { pthread_join(thread, nullptr); }
inline void yield_thread() { sched_yield(); }
// macOS puts threads of a low class on its slow cores, and knows which those are only by what it is told.
inline void prefer_fast_cores() {
#if defined(__APPLE__)
  if (qos_class_self() < QOS_CLASS_USER_INITIATED) pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0);
#endif
}
// How long the calling thread has run.
inline std::chrono::nanoseconds thread_cpu_time() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}
#endif

inline void keep_to([[maybe_unused]] Thread thread, [[maybe_unused]] const int32_t* processor, [[maybe_unused]] int32_t n) {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int32_t i = 0; i < n; i++)
    if (processor[i] >= 0 && processor[i] < CPU_SETSIZE) CPU_SET(processor[i], &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
#endif
}

inline void cpu_relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Round to nearest, keep subnormals, trap nothing: what the results depend on and a host program may have changed.
class FloatEnvironment {
 public:
#if defined(__x86_64__) || defined(_M_X64)
  FloatEnvironment() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~FloatEnvironment() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FloatEnvironment() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0));
  }
  ~FloatEnvironment() { __asm__ volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  uint64_t before_;
#endif
};

#include "threads.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>

#if defined(_WIN32)
#include <windows.h>
#else
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#else
#include <condition_variable>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace {

const int32_t MAX_THREADS = 1024;
typedef std::chrono::steady_clock Clock;

// A thread waits awake between the steps of an answer: to wake a core takes up to a fifth of a step on a virtual machine.
// It begins to give way after ALONE, and sleeps after AWAKE, or once it was GONE: then others want its core.
const std::chrono::microseconds ALONE(20), AWAKE(5000), GONE(1000);

inline void let_others_run() {
#if defined(_WIN32)
  SwitchToThread();
#else
  sched_yield();
#endif
}

inline void pause_briefly() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Round to nearest, keep subnormals, trap nothing: what the results depend on and a host program may have changed.
class FloatMode {
 public:
#if defined(__x86_64__) || defined(_M_X64)
  FloatMode() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~FloatMode() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FloatMode() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0));
  }
  ~FloatMode() { __asm__ volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  uint64_t before_;
#endif
};

// A number that only moves on; threads wait for it to leave a value they have seen.
class alignas(64) Gate {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }

  void wait_while(uint32_t seen) {
    const Clock::time_point begin = Clock::now();
    for (Clock::time_point now = begin, last = begin; now - begin < AWAKE && now - last < GONE; now = Clock::now()) {
      last = now;
      for (int i = 0; i < 16; i++) {
        if (value() != seen) return;
        pause_briefly();
      }
      if (now - begin > ALONE) let_others_run();
    }
    sleep_while(seen);
  }

#if defined(__linux__)
  void advance() {
    value_.fetch_add(1);
    if (sleepers_.load()) syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, MAX_THREADS, nullptr, nullptr, 0);
  }

 private:
  void sleep_while(uint32_t seen) {
    sleepers_.fetch_add(1);
    while (value_.load() == seen) syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    sleepers_.fetch_sub(1);
  }

  std::atomic<uint32_t> sleepers_{0};
#else
  void advance() {
    const std::lock_guard<std::mutex> lock(mutex_);
    value_.fetch_add(1);
    changed_.notify_all();
  }

 private:
  void sleep_while(uint32_t seen) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return value_.load() != seen; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
#endif
  std::atomic<uint32_t> value_{0};
};

#if defined(_WIN32)
typedef HANDLE Thread;
unsigned long process() { return GetCurrentProcessId(); }
bool start(Thread* thread, DWORD(WINAPI* body)(void*), void* data) {
  return (*thread = CreateThread(nullptr, 0, body, data, 0, nullptr)) != nullptr;
}
void join(Thread thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}
#define THREAD_BODY DWORD WINAPI
#else
typedef pthread_t Thread;
pid_t process() { return getpid(); }
bool start(Thread* thread, void* (*body)(void*), void* data) {
  return pthread_create(thread, nullptr, body, data) == 0;
}
void join(Thread thread) { pthread_join(thread, nullptr); }
#define THREAD_BODY void*
#endif

thread_local bool g_in_job = false;

}  // namespace

struct lr_threads {
  struct Worker {
    lr_threads* threads;
    int32_t number;
    Thread thread;
  };

  const int32_t count;
  const decltype(process()) owner = process();
  std::mutex job_mutex;
  Gate job_gate, meeting_gate;
  alignas(64) std::atomic<int32_t> n_arrived{0};
  void (*job)(void* data, int32_t thread) = nullptr;  // null tells workers to end
  void* data = nullptr;
  Worker* workers = nullptr;
  int32_t n_workers = 0;

  explicit lr_threads(int32_t n) : count(n) {}
};

namespace {

THREAD_BODY work(void* argument) {
  const lr_threads::Worker* worker = (const lr_threads::Worker*)argument;
  lr_threads* threads = worker->threads;
  const FloatMode mode;
  g_in_job = true;
  for (uint32_t seen = 0;; seen++) {
    threads->job_gate.wait_while(seen);
    if (!threads->job) return 0;
    threads->job(threads->data, worker->number);
    threads_meet(threads, nullptr, nullptr);
  }
}

void stop(lr_threads* threads) {
  threads->job = nullptr;
  threads->job_gate.advance();
  for (int32_t i = 0; i < threads->n_workers; i++) join(threads->workers[i].thread);
  delete[] threads->workers;
  delete threads;
}

}  // namespace

int32_t threads_count(const lr_threads* threads) { return threads->count; }

void threads_meet(lr_threads* threads, void (*last)(void* data), void* data) {
  const uint32_t seen = threads->meeting_gate.value();
  if (threads->n_arrived.fetch_add(1) + 1 < threads->count) return threads->meeting_gate.wait_while(seen);
  threads->n_arrived.store(0);
  if (last) last(data);
  threads->meeting_gate.advance();
}

int threads_run(lr_threads* threads, void (*job)(void* data, int32_t thread), void* data) {
  if (g_in_job || threads->owner != process()) return LR_BUSY;
  const std::lock_guard<std::mutex> lock(threads->job_mutex);
  const FloatMode mode;
  g_in_job = true;
  threads->job = job;
  threads->data = data;
  threads->job_gate.advance();
  job(data, 0);
  threads_meet(threads, nullptr, nullptr);
  g_in_job = false;
  return LR_OK;
}

lr_threads* lr_threads_create(int32_t n_threads) {
  if (n_threads < 1 || n_threads > MAX_THREADS) return nullptr;
  lr_threads* threads = new (std::nothrow) lr_threads(n_threads);
  if (!threads) return nullptr;
  threads->workers = new (std::nothrow) lr_threads::Worker[n_threads];
  for (int32_t i = 1; i < n_threads; i++) {
    lr_threads::Worker* worker = threads->workers ? &threads->workers[threads->n_workers] : nullptr;
    if (worker) *worker = {threads, i, {}};
    if (!worker || !start(&worker->thread, work, worker)) {
      stop(threads);
      return nullptr;
    }
    threads->n_workers++;
  }
  return threads;
}

void lr_threads_destroy(lr_threads* threads) {
  if (!threads || threads->owner != process()) return;  // a forked child has no workers to end
  threads->job_mutex.lock();
  threads->job_mutex.unlock();
  stop(threads);
}

int lr_parallel(lr_threads* threads, int64_t n_tasks, void (*task)(void* data, int64_t index), void* data) {
  if (!threads || !task || n_tasks < 0) return LR_BAD_ARGUMENT;
  struct Loop {
    int64_t n_tasks;
    void (*task)(void* data, int64_t index);
    void* data;
    std::atomic<int64_t> next;
  } loop = {n_tasks, task, data, {0}};
  return threads_run(
      threads,
      [](void* shared, int32_t) {
        Loop* all = (Loop*)shared;
        for (int64_t i; (i = all->next.fetch_add(1)) < all->n_tasks;) all->task(all->data, i);
      },
      &loop);
}

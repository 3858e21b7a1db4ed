// Measures of the machine, taken by the pool that runs the programs.
#include "isa.h"
#include "runtime/os_thread.h"
#include "runtime/thread_pool.h"

#include <atomic>
#include <chrono>
#include <string.h>

namespace {

typedef std::chrono::steady_clock Clock;
const int64_t CHUNK = 1 << 20, ROUNDS = 10000;
const int REPEATS = 24;

double seconds_since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

struct Memory {
  const char* start;
  int64_t bytes;
  const lr_probe_kernels* kernels;
};

int64_t chunk_bytes(const Memory* memory, int64_t i) {
  return memory->bytes - i * CHUNK < CHUNK ? memory->bytes - i * CHUNK : CHUNK;
}

// A task of each thread: none begins before all are there, so nobody takes two.
struct Meeting {
  int32_t n_threads;
  std::atomic<int32_t> n_ready{0};

  void wait_for_all() {
    n_ready++;
    while (n_ready.load() < n_threads) cpu_relax(), yield_thread();
  }
};

struct Race {
  int64_t (*multiply)(int64_t rounds);
  Meeting start;
  std::atomic<int64_t> rate{0};  // of all threads together
};

void multiply_once(void* data, int64_t) {
  Race* race = (Race*)data;
  race->start.wait_for_all();
  const Clock::time_point begun = Clock::now();
  const int64_t done = race->multiply(ROUNDS);
  race->rate.fetch_add((int64_t)((double)done / seconds_since(begun)));
}

// Whose pages a thread touches are the part of memory that its share of the tasks of a matrix reads.
struct Touch {
  char* start;
  int64_t bytes;
  Meeting meeting;
  bool begun;
};

int64_t next_touch(void* data) {
  Touch* all = (Touch*)data;
  if (all->begun) return -1;
  all->begun = true;
  return all->meeting.n_threads;
}

void touch_share(void* data, int32_t thread, int64_t) {
  Touch* all = (Touch*)data;
  const int32_t n = all->meeting.n_threads;
  all->meeting.wait_for_all();
  const int64_t first = all->bytes / n * thread, end = thread + 1 < n ? all->bytes / n * (thread + 1) : all->bytes;
  memset(all->start + first, 0, (size_t)(end - first));
}

}  // namespace

int lr_first_touch(lr_threads* threads, void* start, int64_t bytes) {
  if (!threads || !start || bytes < 1) return LR_BAD_ARGUMENT;
  Touch touch = {(char*)start, bytes, {threads_count(threads)}, false};
  const lr_job job = {next_touch, touch_share, true};
  return threads_run(threads, &job, &touch);
}

double lr_probe_read(lr_threads* threads, const void* start, int64_t bytes) {
  if (!start || bytes < 1) return -1.0;
  Memory memory = {(const char*)start, bytes, lr_current_kernels()->probe};
  const auto read = [](void* data, int64_t i) {
    const Memory* all = (const Memory*)data;
    all->kernels->read(all->start + i * CHUNK, chunk_bytes(all, i));
  };
  const Clock::time_point begun = Clock::now();
  if (lr_parallel(threads, (bytes + CHUNK - 1) / CHUNK, read, &memory) != LR_OK) return -1.0;
  return (double)bytes / seconds_since(begun);
}

double lr_probe_multiply(lr_threads* threads, int32_t kind) {
  const lr_probe_kernels* kernels = lr_current_kernels()->probe;
  if (!threads || (kind != LR_PROBE_INT8 && kind != LR_PROBE_F16)) return -1.0;
  int64_t best = 0;
  for (int i = 0; i < REPEATS; i++) {
    Race race = {kind == LR_PROBE_INT8 ? kernels->multiply_int8 : kernels->multiply_f16, {threads_count(threads)}};
    if (lr_parallel(threads, race.start.n_threads, multiply_once, &race) != LR_OK) return -1.0;
    best = race.rate > best ? race.rate.load() : best;
  }
  return (double)best;
}

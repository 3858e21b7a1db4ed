// A loop over independent tasks on the thread pool: a job of one phase.
#include "runtime/thread_pool.h"

int lr_parallel(lr_threads* threads, int64_t n_tasks, void (*task)(void* data, int64_t index), void* data) {
  if (!threads || !task || n_tasks < 0 || n_tasks > INT64_MAX / LR_MAX_THREADS) return LR_BAD_ARGUMENT;
  struct Loop {
    int64_t n_tasks;
    void (*task)(void* data, int64_t index);
    void* data;
    bool begun;
  } loop = {n_tasks, task, data, false};
  const auto next = [](void* shared) -> int64_t {
    Loop* all = (Loop*)shared;
    if (all->begun) return -1;
    all->begun = true;
    return all->n_tasks;
  };
  const auto run = [](void* shared, int32_t, int64_t i) { ((Loop*)shared)->task(((Loop*)shared)->data, i); };
  const lr_job job = {next, run, true};
  return threads_run(threads, &job, &loop);
}

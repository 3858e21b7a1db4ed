// The thread pool. A job is phases one after the other, a phase a number of independent tasks. The end of a
// phase is a barrier for its tasks, not for its threads: nobody waits for one that took none. Between phases and jobs a
// thread stays awake for some milliseconds, giving way to whoever wants its core, before it sleeps. The caller of a job is
// its thread 0.
#pragma once
#include <stdint.h>

#include "localrun_cpu.h"

typedef struct {
  // Tasks of the next phase; -1: the job is over. Called by one thread at a time, while no task runs.
  int64_t (*next)(void* data);
  void (*run)(void* data, int32_t thread, int64_t task);
  // Its tasks wait for one another, or measure all threads: none may stay away because others want its core.
  bool wants_all;
} lr_job;

// Returns when the job is over. LR_BUSY inside a job or in a forked child.
int threads_run(lr_threads* threads, const lr_job* job, void* data);

enum { LR_MAX_THREADS = 1024 };

int32_t threads_count(const lr_threads* threads);

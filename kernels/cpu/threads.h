// The library's own threads. Between jobs, and at the barriers inside one, a thread stays awake for some milliseconds,
// giving way to whoever wants its core, before it sleeps. The caller of a job is its thread 0.
#pragma once
#include <stdint.h>

#include "localrun_cpu.h"

// Runs job(data, thread) once on every thread and returns when all are done. LR_BUSY inside a job or in a forked child.
int threads_run(lr_threads* threads, void (*job)(void* data, int32_t thread), void* data);

// All threads of the running job meet here. The last to arrive calls last(data), if given, before any goes on.
void threads_meet(lr_threads* threads, void (*last)(void* data), void* data);

int32_t threads_count(const lr_threads* threads);

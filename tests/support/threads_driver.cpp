// Drives the library's threads from below: many tiny phases whose tasks are counted, jobs that end early, pools that come
// and go; a worker that a signal holds fast while jobs run ("held"); one that is as slow as can be ("slow");
// and phases with fewer tasks than threads ("few").
#include "runtime/thread_pool.cpp"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

static void check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

// What `next` writes is plain: it is seen, and not changed, while tasks of its phase run.
struct Counted {
  std::minstd_rand random;
  int phases_left;
  std::vector<std::atomic<int>> done;
  std::atomic<int> running{0};
  int64_t n_tasks = 0, n_run = 0, plain = 0;

  Counted(unsigned seed, int phases) : random(seed), phases_left(phases), done(64) {}

  int64_t next() {
    check(running == 0, "a task runs between phases");
    for (int64_t i = 0; i < n_tasks; i++) check(done[i].exchange(0) == 1, "a task did not run once");
    n_run += n_tasks;
    plain++;
    n_tasks = random() % 3 ? random() % 4 : random() % 64;
    return phases_left-- ? n_tasks : -1;
  }

  void run(int64_t task) {
    running++;
    check(task >= 0 && task < n_tasks && plain > 0, "a task of another phase");
    done[task]++;
    if ((task * 31 + plain) % 97 == 0) std::this_thread::yield();
    if ((task * 31 + plain) % 1999 == 0) usleep(2000);
    running--;
  }
};

static const lr_job JOB = {[](void* data) { return ((Counted*)data)->next(); },
                           [](void* data, int32_t, int64_t task) { ((Counted*)data)->run(task); }, false};

static void run_counted(lr_threads* threads, unsigned seed, int phases) {
  std::unique_ptr<Counted> job(new Counted(seed, phases));  // gone as soon as the job is over
  check(threads_run(threads, &JOB, job.get()) == LR_OK, "the job is refused");
  check(job->phases_left == -1, "the job ended early");
}

static void stress(int rounds) {
  for (int n_threads : {1, 2, 3, 8, 32}) {
    lr_threads* threads = lr_threads_create(n_threads);
    for (int i = 0; i < rounds; i++) run_counted(threads, 1000 * n_threads + i, i % 7 ? 40 : i);
    lr_threads_destroy(threads);
  }
  for (int i = 0; i < rounds; i++) {
    lr_threads* threads = lr_threads_create(1 + i % 5);
    if (i % 3) run_counted(threads, i, i % 11);
    lr_threads_destroy(threads);
  }
}

// Held in a signal handler, as by a machine that has no core for it.
static int release[2];
static std::atomic<bool> is_held{false};
static void hold(int) {
  char byte;
  is_held = true;
  check(read(release[0], &byte, 1) == 1, "no release");
}

struct Meeting {
  pthread_t caller, worker;
  std::atomic<int> n_there{0};
};

static void held() {
  check(pipe(release) == 0 && signal(SIGUSR1, hold) != SIG_ERR, "no pipe or signal");
  lr_threads* threads = lr_threads_create(2);
  Meeting meeting = {pthread_self(), pthread_self()};
  const auto meet = [](void* data, int64_t) {
    Meeting* m = (Meeting*)data;
    if (!pthread_equal(pthread_self(), m->caller)) m->worker = pthread_self();
    m->n_there++;
    while (m->n_there < 2) std::this_thread::yield();
  };
  check(lr_parallel(threads, 2, meet, &meeting) == LR_OK, "no meeting");
  check(pthread_kill(meeting.worker, SIGUSR1) == 0, "no worker");
  while (!is_held) usleep(1000);
  for (int i = 0; i < 300; i++) run_counted(threads, i, 40);
  check(write(release[1], "x", 1) == 1, "no release");
  for (int i = 0; i < 300; i++) run_counted(threads, i, 40);
  lr_threads_destroy(threads);
}

// Thread 3 is never done with a task before the others have done all the rest of its phase.
struct Uneven {
  enum { TASKS = 64, PHASES = 200 };
  int phases_left = PHASES;
  std::atomic<int> n_done{0};
  std::atomic<int> n_of_slow{0}, n_slow_phases{0};

  int64_t next() {
    check(n_of_slow <= 1, "the slow thread got a second task of a phase");
    n_slow_phases += n_of_slow.exchange(0);
    n_done = 0;
    return phases_left-- ? (int64_t)TASKS : -1;
  }

  void run(int32_t thread) {
    if (thread == 3) {
      n_of_slow++;
      while (n_done < TASKS - 1) std::this_thread::yield();
    } else if (n_slow_phases == 0 && !n_of_slow) {
      usleep(1000);  // until it has come
    }
    n_done++;
  }
};

static void slow() {
  const lr_job job = {[](void* data) { return ((Uneven*)data)->next(); },
                      [](void* data, int32_t thread, int64_t) { ((Uneven*)data)->run(thread); }, true};
  lr_threads* threads = lr_threads_create(4);
  Uneven uneven;
  check(threads_run(threads, &job, &uneven) == LR_OK, "the job is refused");
  check(uneven.n_slow_phases > 0, "the slow thread got nothing to do");
  lr_threads_destroy(threads);
}

// Two tasks that go on until the other six threads have had time to come.
struct Few {
  lr_threads* threads;
  int phases_left = 40;
  std::atomic<int> n_there{0}, n_checked{0};

  int64_t next() {
    n_there = n_checked = 0;
    return phases_left-- ? 2 : -1;
  }

  void run() {
    for (n_there++; n_there < 2;) std::this_thread::yield();
    usleep(1000);
    check(!(threads->state & CLOSED) && inside_of(threads->state) == 2, "a thread came for nothing");
    for (n_checked++; n_checked < 2;) std::this_thread::yield();
  }
};

static void few() {
  const lr_job job = {[](void* data) { return ((Few*)data)->next(); },
                      [](void* data, int32_t, int64_t) { ((Few*)data)->run(); }, true};
  lr_threads* threads = lr_threads_create(8);
  Few all = {threads};
  check(threads_run(threads, &job, &all) == LR_OK, "the job is refused");
  lr_threads_destroy(threads);
}

int main(int argc, char** argv) {
  if (argc == 3 && !strcmp(argv[1], "stress")) stress(atoi(argv[2]));
  else if (argc == 2 && !strcmp(argv[1], "slow")) slow();
  else if (argc == 2 && !strcmp(argv[1], "few")) few();
  else held();
  puts("done");
  return 0;
}

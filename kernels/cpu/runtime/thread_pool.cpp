// How a phase begins and ends, which is the pool's barrier. All of it stands in one number: which phase, how many threads
// it has places for, how many are in it, and whether it is closed. A thread enters an open phase that has a place left,
// takes tasks until none is left and leaves. The first to leave closes the phase: there is nothing left to take, so
// nobody else need come. Who leaves last finds every task done and opens the next, alone. A late thread finds a phase
// closed or full; since no phase ends with a thread in it, nobody can take a task of a phase that is over, or look at a
// job that is. With many threads that number is what they quarrel over, so a phase has no more places than tasks.
//
// Memory order: every change of that number reads and writes it, so what a thread wrote before leaving is seen by who
// leaves last, and what that one wrote before opening the next is seen by all who enter. The counts of taken tasks
// and the job itself change only while the phase is closed, so relaxed loads of them are enough.
#include "runtime/thread_pool.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "runtime/event_count.h"

namespace {

const uint64_t CLOSED = 2 * LR_MAX_THREADS, ONE_PLACE = 2 * CLOSED, ONE_PHASE = ONE_PLACE * CLOSED;

uint64_t phase_of(uint64_t state) { return state / ONE_PHASE; }
uint64_t places_of(uint64_t state) { return state % ONE_PHASE / ONE_PLACE; }
uint64_t inside_of(uint64_t state) { return state % CLOSED; }

// How many tasks of a share have been taken. A share is a run of neighbours, one for every place: a thread that streams a
// weight goes on where it stopped, and steals from other shares when its own is done.
struct alignas(64) TaskShare {
  std::atomic<int64_t> n_taken{0};
};

thread_local bool g_in_job = false, g_prefers_fast_cores = false;

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
  alignas(64) std::atomic<uint64_t> state{CLOSED};
  alignas(64) const lr_job* job = nullptr;
  void* data = nullptr;
  int64_t n_tasks = 0;
  TaskShare* shares = nullptr;  // [count]
  std::atomic<bool> over{true}, wants_all{false}, ending{false};
  EventCount phase_event;   // a phase is open, or the job is over, or all end
  EventCount recall_event;  // for those that stay away: all are wanted, or all end
  Worker* workers = nullptr;
  int32_t n_workers = 0;

  explicit lr_threads(int32_t n) : count(n) {}
};

namespace {

// Whether a phase is open that is not `seen`.
bool has_phase(const lr_threads* t, uint64_t seen) {
  const uint64_t state = t->state.load();
  return !(state & CLOSED) && phase_of(state) != seen;
}

// A phase without a place left becomes `seen`.
bool enter(lr_threads* t, uint64_t* seen) {
  uint64_t state = t->state.load(std::memory_order_relaxed);
  while (!(state & CLOSED) && phase_of(state) != *seen) {
    if (inside_of(state) == places_of(state)) *seen = phase_of(state);
    else if (t->state.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
      return true;
  }
  return false;
}

// True for the last.
bool leave(lr_threads* t) {
  uint64_t state = t->state.load(std::memory_order_relaxed), left;
  do left = (state - 1) | CLOSED;
  while (!t->state.compare_exchange_weak(state, left, std::memory_order_acq_rel, std::memory_order_relaxed));
  return !inside_of(left);
}

int64_t places_for(const lr_threads* t) { return std::min<int64_t>(t->count, t->n_tasks); }

// From the thread's own share on, until nobody has a task left.
void run_tasks(lr_threads* t, int32_t thread) {
  const int64_t n_shares = places_for(t), own = thread * n_shares / t->count;
  const auto begin_of = [&](int64_t share) { return (t->n_tasks * share + n_shares - 1) / n_shares; };
  for (int64_t i = 0; i < n_shares && !(t->state.load(std::memory_order_relaxed) & CLOSED); i++) {
    const int64_t share = (own + i) % n_shares, first = begin_of(share), n = begin_of(share + 1) - first;
    std::atomic<int64_t>& n_taken = t->shares[share].n_taken;
    while (n_taken.load(std::memory_order_relaxed) < n) {
      const int64_t task = n_taken.fetch_add(1, std::memory_order_relaxed);
      if (task < n) t->job->run(t->data, thread, first + task);
    }
  }
}

// By the last to leave a phase: opens the next with itself in it; false when the job is over. A single task is done
// at once: to hand it out would take longer.
bool open_next(lr_threads* t, int32_t thread) {
  int64_t n;
  while ((n = t->job->next(t->data)) >= 0) {
    if (n == 1) t->job->run(t->data, thread, 0);
    if (n <= 1) continue;
    t->n_tasks = n;
    const int64_t places = places_for(t);
    for (int64_t i = 0; i < places; i++) t->shares[i].n_taken.store(0, std::memory_order_relaxed);
    const uint64_t phase = phase_of(t->state.load(std::memory_order_relaxed)) + 1;
    t->state.store(phase * ONE_PHASE + (uint64_t)places * ONE_PLACE + 1);
    t->phase_event.notify_all();
    return true;
  }
  t->over.store(true);  // from here on the job and its data may be gone
  t->phase_event.notify_all();
  return false;
}

// In a phase: does tasks, here and in the phases it opens. Returns the number of the phase it left.
uint64_t run_phases(lr_threads* t, int32_t thread) {
  for (;;) {
    run_tasks(t, thread);
    const uint64_t phase = phase_of(t->state.load(std::memory_order_relaxed));
    if (!leave(t) || !open_next(t, thread)) return phase;
  }
}

// Whether a worker does more good than harm: one that loses its core in the middle of a task stops all others. When what
// it lost outweighs its share of the work it stays away for a while, longer each time until it was undisturbed for long.
class WorkerBackoff {
 public:
  // A visit to phases begins, after a wait.
  void begin(bool gave_way) {
    entered_ = Clock::now();
    if (gave_way) count_anew();
  }

  void end(lr_threads* t) {
    if (Clock::now() - entered_ < GONE) return;
    const Clock::duration lost = Clock::now() - counted_ - (thread_cpu_time() - ran_);
    if (lost > GONE) lose(t, lost);
    count_anew();
  }

  void lose(lr_threads* t, Clock::duration lost) {
    if (t->wants_all.load()) return;
    const Clock::time_point now = Clock::now();
    if (now - since_ > 4 * WINDOW) since_ = now, lost_ = {};
    lost_ += lost;
    if (2 * lost_ * t->count < std::max(now - since_, WINDOW)) return;
    absence_ = now - since_ > 8 * absence_ ? SHORTEST : std::min(2 * absence_, LONGEST);
    t->recall_event.wait([&] { return t->wants_all.load() || t->ending.load(); }, now + absence_);
    since_ = Clock::now(), lost_ = {};
  }

 private:
  static constexpr Clock::duration WINDOW = std::chrono::milliseconds(32), SHORTEST = std::chrono::milliseconds(16),
                                   LONGEST = std::chrono::milliseconds(256);

  void count_anew() { counted_ = Clock::now(), ran_ = thread_cpu_time(); }

  Clock::time_point entered_, counted_ = Clock::now(), since_;
  std::chrono::nanoseconds ran_ = thread_cpu_time();  // at `counted_`
  Clock::duration lost_{}, absence_ = SHORTEST;       // lost from `since_` on
};

THREAD_BODY worker_loop(void* argument) {
  const lr_threads::Worker* worker = (const lr_threads::Worker*)argument;
  lr_threads* t = worker->threads;
  const FloatEnvironment mode;
  g_in_job = true;
  prefer_fast_cores();
  WorkerBackoff presence;
  for (uint64_t seen = 0;;) {
    const auto ready = [&] { return t->ending.load() || has_phase(t, seen); };
    const Waited waited = wait_awake(ready);
    if (waited.gone > GONE && !t->over.load()) presence.lose(t, waited.gone);
    else if (!waited.ready) t->phase_event.wait(ready);
    if (t->ending.load()) return 0;
    if (!enter(t, &seen)) continue;
    presence.begin(waited.gave_way);
    seen = run_phases(t, worker->number);
    presence.end(t);
  }
}

void stop(lr_threads* t) {
  t->ending.store(true);
  t->phase_event.notify_all();
  t->recall_event.notify_all();
  for (int32_t i = 0; i < t->n_workers; i++) join(t->workers[i].thread);
  delete[] t->workers;
  delete[] t->shares;
  delete t;
}

}  // namespace

int32_t threads_count(const lr_threads* threads) { return threads->count; }

int threads_run(lr_threads* t, const lr_job* job, void* data) {
  if (g_in_job || t->owner != process()) return LR_BUSY;
  if (!g_prefers_fast_cores) prefer_fast_cores();
  g_prefers_fast_cores = true;
  const std::lock_guard<std::mutex> lock(t->job_mutex);
  const FloatEnvironment mode;
  g_in_job = true;
  t->job = job;
  t->data = data;
  t->over.store(false);
  t->wants_all.store(job->wants_all);
  if (job->wants_all) t->recall_event.notify_all();
  uint64_t seen = phase_of(t->state.load());
  for (bool inside = open_next(t, 0); !t->over.load(); inside = enter(t, &seen)) {
    if (inside) seen = run_phases(t, 0);
    const auto ready = [&] { return t->over.load() || has_phase(t, seen); };
    const Waited waited = wait_awake(ready);
    if (!waited.ready && waited.gone < GONE) t->phase_event.wait(ready);
  }
  g_in_job = false;
  return LR_OK;
}

lr_threads* lr_threads_create(int32_t n_threads) {
  if (n_threads < 1 || n_threads > LR_MAX_THREADS) return nullptr;
  lr_threads* t = new (std::nothrow) lr_threads(n_threads);
  if (!t) return nullptr;
  t->shares = new (std::nothrow) TaskShare[n_threads];
  t->workers = new (std::nothrow) lr_threads::Worker[n_threads];
  for (int32_t i = 1; i < n_threads || !t->shares || !t->workers; i++) {
    lr_threads::Worker* worker = t->shares && t->workers ? &t->workers[t->n_workers] : nullptr;
    if (worker) *worker = {t, i, {}};
    if (!worker || !start(&worker->thread, worker_loop, worker)) {
      stop(t);
      return nullptr;
    }
    t->n_workers++;
  }
  return t;
}

void lr_threads_destroy(lr_threads* threads) {
  if (!threads || threads->owner != process()) return;  // a forked child has no workers to end
  threads->job_mutex.lock();
  threads->job_mutex.unlock();
  stop(threads);
}

int lr_threads_keep_to(lr_threads* threads, int32_t thread, const int32_t* processor, int32_t n_processors) {
  if (!threads || thread < 1 || thread >= threads->count || !processor || n_processors < 1) return LR_BAD_ARGUMENT;
  keep_to(threads->workers[thread - 1].thread, processor, n_processors);
  return LR_OK;
}

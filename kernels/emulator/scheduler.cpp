// Launches: blocks one after the other, their threads in turns, and the places where threads wait for each other.
#include "fibers.h"
#include "warp.h"

#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <utility>
#include <vector>

emu_thread* emu_current;
emu_place emu_at;

namespace {
struct Thread : emu_thread {
  uint32_t turn;     // its place in the order of this block
  Thread* after;     // who has the next place; null of the last
  Fiber* fiber;      // null until it has started
  const char* file;  // where it waits; null of one that has returned
  int line;
};
struct Meeting {
  emu_op op;
  uint32_t mask, here;  // who is to come, who has come
  const char* file;
  int line;
  void* operands[32];
};
struct Warp {
  Meeting meetings[4];  // groups of lanes that go separate ways
};

constexpr uint32_t MAX_THREADS = 1024;
std::mutex one_launch;
Thread threads[MAX_THREADS];
emu_copy copies[MAX_THREADS][EMU_MAX_COPIES];
Warp warps[MAX_THREADS / 32];
Fiber fibers[MAX_THREADS + 1];
uint32_t n_fibers, n_taken;  // how many there are, and how many threads of this block run on one
uint32_t n_threads, n_live, n_at_barrier, parity;  // parity: of the barriers passed
const char* barrier_file;
int barrier_line;
bool barrier_of_all;
Fiber caller;
bool entered;  // a fiber has started in this launch
const emu_call* call;
char* dynamic_shared;
uint8_t poison = 0xff;
char message[1024];
typedef uint64_t __attribute__((aligned(1), may_alias)) emu_word;
char barrier_tag[2], syncwarp_tag[32], start_tag, end_tag;  // addresses for the race detector

// The order in which threads, and blocks, take turns.
uint32_t seed, random_state;
std::vector<uint32_t> order;  // threads[order[i]] is the i-th
void shuffle(std::vector<uint32_t>& v) {
  const uint32_t n = (uint32_t)v.size();
  for (uint32_t i = 0; i < n; i++) v[i] = seed == 1 ? n - 1 - i : i;
  if (seed > 1)
    for (uint32_t left = n; left > 1; left--) {
      random_state = random_state * 1664525u + 1013904223u;
      std::swap(v[left - 1], v[(random_state >> 8) % left]);
    }
}
// A bit for each turn: who goes on is asked at every meeting.
uint64_t ready[MAX_THREADS / 64], at_barrier[MAX_THREADS / 64];
void mark(uint64_t (&turns)[MAX_THREADS / 64], const Thread& thread) {
  turns[thread.turn / 64] |= 1ull << thread.turn % 64;
}
void stop(const Thread& thread) {
  ready[thread.turn / 64] &= ~(1ull << thread.turn % 64);
}
void wake(uint32_t warp, uint32_t lanes) {
  if (!seed) {
    ready[warp / 2] |= (uint64_t)lanes << 32 * (warp % 2);
    return;
  }
  for (uint32_t lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1) mark(ready, threads[32 * warp + lane]);
}
// The first that is ready from turn `first` on, before turn `end`.
Thread* first_ready(uint32_t first, uint32_t end) {
  while (first < end) {
    const uint64_t found = ready[first / 64] >> first % 64;
    if (found) {
      first += (uint32_t)__builtin_ctzll(found);
      return first < end ? &threads[order[first]] : nullptr;
    }
    first = (first / 64 + 1) * 64;
  }
  return nullptr;
}
bool is_ready(const Thread& thread) { return ready[thread.turn / 64] >> thread.turn % 64 & 1; }
// Mostly who comes after: the processor foresees that, where it would wait for the bits of a search.
Thread* next_ready(const Thread* from) {
  if (from->after && is_ready(*from->after)) return from->after;
  Thread* found = first_ready(from->turn + 1, n_threads);
  return found ? found : first_ready(0, from->turn + 1);
}
void thread_main();
// The next fiber's stack, most often what is switched to next, lies on a page of its own: fetched while this one runs.
void fetch_after(const Fiber* fiber) {
  for (int line = 0; line < 6; line++) __builtin_prefetch((const char*)fiber[1].sp + 64 * line, 1);
}
void run(Fiber& from, Thread* thread, bool for_good = false) {
  emu_current = thread;
  if (!thread->fiber) {
    if (n_taken == n_fibers) new_fiber(fibers[n_fibers++]);
    rewind(*(thread->fiber = &fibers[n_taken++]), thread_main);
  }
  fetch_after(thread->fiber);
  switch_fiber(from, *thread->fiber, for_good);
}
void back_to_caller(Thread* from, bool for_good = false) { switch_fiber(*from->fiber, caller, for_good); }

void say_deadlock() {
  size_t n = (size_t)snprintf(message, sizeof message, "deadlock:");
  const Thread* last = nullptr;
  for (uint32_t i = 0, shown = 0; i < n_threads && shown < 4; i++) {
    const Thread* f = &threads[i];
    if (last && !last->file == !f->file && last->line == f->line) continue;
    last = f, shown++;
    const char* what = !f->file ? " thread %u has returned;" : " thread %u waits at %s:%d;";
    n += (size_t)snprintf(message + n, sizeof message - n, what, i, f->file, f->line);
  }
}
// Until somebody makes this thread ready again.
void rest(Thread* me) {
  Thread* other = next_ready(me);
  if (!other) say_deadlock(), back_to_caller(me);
  else if (other != me) run(*me->fiber, other);
}
void open_barrier() {
  for (uint32_t i = 0; i < MAX_THREADS / 64; i++) ready[i] |= at_barrier[i], at_barrier[i] = 0;
  n_at_barrier = 0, parity ^= 1;
}
Meeting* meeting_of(Warp& warp, emu_op op, uint32_t mask, const char* file, int line) {
  Meeting* free = nullptr;
  for (Meeting& m : warp.meetings) {
    if (!m.here) {
      free = &m;
    } else if (m.mask & mask) {
      if (m.mask == mask && m.op == op && m.line == line && m.file == file) return &m;
      char what[256];
      snprintf(what, sizeof what, "lanes of a warp meet in different places (the others at %s:%d)", m.file, m.line);
      emu_fail(what, file, line);
    }
  }
  if (!free) emu_fail("lanes of a warp meet in more than four groups", file, line);
  free->op = op, free->mask = mask, free->file = file, free->line = line;
  return free;
}
// One thread after the other: what has returned leaves its fiber to the next that has not started, whose stack is then in
// the caches. Not for TSan, which would take both for one thread.
void thread_main() {
  Thread* me = (Thread*)emu_current;
  fiber_has_started(entered ? nullptr : &caller);
  entered = true;
  for (;;) {
    acquire(&start_tag);
    call->body(call->closure);
    release(&end_tag);
    if (me->n_copies) emu_fail("a thread returned with copies under way", "the kernel's end", 0);
    stop(*me), me->file = nullptr;
    if (--n_live && n_at_barrier == n_live && !barrier_of_all) open_barrier();
    Thread* other = next_ready(me);
    if (!other) break;
    if (other->fiber || me->fiber->tsan) run(*me->fiber, other, true);
    other->fiber = me->fiber;
    emu_current = me = other;
  }
  back_to_caller(me, true);
  abort();
}
// No memset: the sanitizers know that one, and would find the gaps they put between variables.
void fill(char* from, char* to) {
  const uint64_t word = poison * 0x0101010101010101u;
  for (; to - from >= 8; from += 8) *(volatile emu_word*)from = word;
  while (from < to) *(volatile char*)from++ = (char)poison;
}
void number_threads(emu_dim block) {
  for (uint32_t i = 0; i < n_threads; i++) {
    Thread& t = threads[i];
    t.thread = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    t.index = i, t.lane = i % 32, t.copies = copies[i];
  }
}
void run_block(emu_dim at) {
  acquire(&end_tag);  // blocks follow each other: races are looked for inside one
  fill(call->shared, call->shared_end);
  fill(dynamic_shared, dynamic_shared + call->shared_bytes);
  release(&start_tag);
  shuffle(order);
  emu_at.block = at;
  for (uint32_t turn = 0; turn < n_threads; turn++) {
    Thread& t = threads[order[turn]];
    t.turn = turn, t.after = turn + 1 < n_threads ? &threads[order[turn + 1]] : nullptr;
    t.fiber = nullptr, t.file = "", t.n_copies = t.n_groups = 0, t.shared_bytes = 0;
    ready[turn / 64] |= 1ull << turn % 64;
  }
  for (uint32_t i = 0; i < n_threads; i += 32)
    for (Meeting& m : warps[i / 32].meetings) m.here = 0;
  n_live = n_threads, n_at_barrier = n_taken = 0;
  run(caller, &threads[order[0]]);
  if (n_live && !message[0]) say_deadlock();
}
}  // namespace

extern "C" {
void* emu_dynamic_shared(void) { return dynamic_shared; }

void emu_fail(const char* what, const char* file, int line) {
  Thread* me = (Thread*)emu_current;
  const emu_dim b = emu_at.block;
  snprintf(message, sizeof message, "%s at %s:%d, thread %u of block %u,%u,%u", what, file, line, me->index, b.x, b.y, b.z);
  back_to_caller(me);
  abort();
}

void emu_block_barrier(const char* file, int line, bool of_all) {
  Thread* me = (Thread*)emu_current;
  if (n_at_barrier && (line != barrier_line || file != barrier_file))
    emu_fail("threads of a block wait at different barriers", file, line);
  barrier_file = file, barrier_line = line, barrier_of_all = of_all;
  char* tag = &barrier_tag[parity];
  release(tag);
  me->file = file, me->line = line;
  stop(*me), mark(at_barrier, *me);
  const bool last = ++n_at_barrier == (of_all ? n_threads : n_live);
  if (last) open_barrier();
  if (!last || seed) rest(me);
  acquire(tag);
}

void emu_meet(emu_op op, uint32_t mask, void* operands, const char* file, int line) {
  Thread* me = (Thread*)emu_current;
  const uint32_t warp = me->index / 32;
  if (!(mask >> me->lane & 1)) emu_fail("a lane is not in its own mask", file, line);
  Meeting* m = meeting_of(warps[warp], op, mask, file, line);
  // Only __syncwarp orders memory; a shuffle or an mma does not.
  if (op == EMU_SYNC) release(&syncwarp_tag[warp]);
  m->here |= 1u << me->lane, m->operands[me->lane] = operands;
  me->file = file, me->line = line;
  if (m->here == mask) {
    perform(op, mask, m->operands);
    m->here = 0;
    wake(warp, mask);
  } else {
    stop(*me);
    rest(me);
  }
  if (op == EMU_SYNC) acquire(&syncwarp_tag[warp]);
}

// Turns: 0 ascending, 1 descending, else shuffled by the seed. `byte`: what shared memory holds at first.
void emu_schedule(uint32_t turns, uint8_t byte) { seed = turns, poison = byte; }
const char* emu_error(void) { return message; }

int emu_launch(const emu_call* the_call, const uint32_t grid[3], const uint32_t block[3]) {
  const std::lock_guard<std::mutex> alone(one_launch);
  call = the_call, message[0] = 0, entered = false, random_state = seed, parity = 0;
  n_threads = block[0] * block[1] * block[2];
  if (n_threads < 1 || n_threads > MAX_THREADS)
    return snprintf(message, sizeof message, "a block of %u threads", n_threads) > 0;
  emu_at = {{}, {block[0], block[1], block[2]}, {grid[0], grid[1], grid[2]}};
  number_threads(emu_at.block_dim);
  memset(ready, 0, sizeof ready), memset(at_barrier, 0, sizeof at_barrier);
  fiber_of_caller(caller);
  order.resize(n_threads);
  void* memory = nullptr;
  if (call->shared_bytes && posix_memalign(&memory, 128, call->shared_bytes))
    return snprintf(message, sizeof message, "out of memory") > 0;
  dynamic_shared = (char*)memory;
  std::vector<uint32_t> blocks((size_t)grid[0] * grid[1] * grid[2]);
  shuffle(blocks);
  for (const uint32_t i : blocks) {
    const emu_dim at = {i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]};
    run_block(at);
    if (message[0]) break;
  }
  acquire(&end_tag);
  free(dynamic_shared);
  return message[0] != 0;
}
}

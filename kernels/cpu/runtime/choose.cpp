// The next tokens of the rows of a step. What candidates decide, as nearly always, takes less than to share it out; the
// other rows are looked through side by side, a task each.
#include "isa.h"
#include "runtime/os_thread.h"
#include "runtime/thread_pool.h"

namespace {

struct Choice {
  const lr_choose_kernels* kernels;
  const float* rows;
  int32_t vocab;
  const lr_candidates* candidates;
  const lr_draw* draws;
  int32_t n_draws;
  int32_t* tokens;  // below 0: not yet chosen
  bool begun;
};

bool is_valid(const lr_draw& draw, int32_t n_rows, int32_t vocab, const lr_candidates* candidates) {
  if (draw.row < 0 || draw.row >= n_rows || draw.top_k < 0) return false;
  const int32_t n = candidates[draw.row].n_candidates;
  return n >= 1 && n <= LR_MAX_CANDIDATES && n <= vocab && draw.temperature >= 0.0 && draw.top_p >= 0.0 &&
         draw.min_p >= 0.0 && draw.u >= 0.0 && draw.u < 1.0;
}

bool decide_by_candidates(const Choice& all) {
  const FloatEnvironment mode;
  bool are_decided = true;
  for (int32_t i = 0; i < all.n_draws; i++) {
    all.tokens[i] = all.kernels->of_candidates(all.vocab, &all.candidates[all.draws[i].row], &all.draws[i]);
    are_decided &= all.tokens[i] >= 0;
  }
  return are_decided;
}

int64_t next_phase(void* data) {
  Choice* all = (Choice*)data;
  if (all->begun) return -1;
  all->begun = true;
  return all->n_draws;
}

void decide_by_row(void* data, int32_t, int64_t i) {
  const Choice* all = (const Choice*)data;
  if (all->tokens[i] >= 0) return;
  const lr_draw* draw = &all->draws[i];
  const float* row = all->rows + (int64_t)draw->row * all->vocab;
  all->tokens[i] = all->kernels->of_row(row, all->vocab, &all->candidates[draw->row], draw);
}

const lr_job BY_ROW = {next_phase, decide_by_row, false};

}  // namespace

int lr_choose(lr_threads* threads, const float* rows, int32_t n_rows, int32_t vocab, const lr_candidates* candidates,
              const lr_draw* draws, int32_t n_draws, int32_t* tokens) {
  if (!threads || !rows || !candidates || n_draws < 0 || vocab < 1 || vocab > LR_MAX_VOCAB) return LR_BAD_ARGUMENT;
  if (n_draws > 0 && (!draws || !tokens)) return LR_BAD_ARGUMENT;
  for (int32_t i = 0; i < n_draws; i++)
    if (!is_valid(draws[i], n_rows, vocab, candidates)) return LR_BAD_ARGUMENT;
  Choice all = {lr_current_kernels()->choose, rows, vocab, candidates, draws, n_draws, tokens, false};
  return decide_by_candidates(all) ? LR_OK : threads_run(threads, &BY_ROW, &all);
}
